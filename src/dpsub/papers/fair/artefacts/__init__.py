"""Tables, figures and claims, made from records."""
