"""Tables, figures and claims of Balle, Barthe and Gaboardi (2018)."""
