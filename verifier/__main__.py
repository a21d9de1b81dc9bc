"""``python verifier c.json``: proves the claims of a certificate again, or says where that
fails."""

import sys

from certificate import verify

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python verifier CERTIFICATE")
    lines, status = verify(sys.argv[1])
    print("\n".join(lines))
    sys.exit(status)
