"""Every sampler at one proved privacy: this project's own comparison."""
