"""Other accountants must agree with ours, and ours must be the sharper."""
