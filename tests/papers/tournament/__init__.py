"""Tests that need this paper; they are left out where its folder is not there."""
