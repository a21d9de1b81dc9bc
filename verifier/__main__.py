"""``python verifier c.json``: proves the claims of a certificate again, or says where that
fails."""

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn, TextIO

# When installed, the modules lie in a package's folder; this finds them as in a clone.
sys.path.insert(0, str(Path(__file__).parent))

from certificate import judged

STATUSES = """\
exit status:
  0  verified: all that is claimed, at least one end
  1  refuted: a claim does not follow, or the question is none that can be asked, or another one
     than was expected
  2  not readable: no file, no certificate in the schema of docs/certificates.md, or nothing is
     claimed
  3  not covered: a theorem or a size that this program does not go to
  4  not told: the verdict cannot be written to the standard output
  5  not asked: the command has no file, or an option that there is none of"""

NOT_TOLD, NOT_ASKED = 4, 5


class Parser(argparse.ArgumentParser):
    """Parser that exits with a status of its own for a mistyped command, which says nothing about a
    file."""

    def error(self, message: str) -> NoReturn:
        self.exit(NOT_ASKED, f"{self.format_usage()}{self.prog}: error: {message}\n")


def main() -> int:
    parser = Parser(
        prog="verifier",
        description="Prove the claims of a certificate of dpsub again (docs/certificates.md).",
        epilog=STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("certificate", metavar="CERTIFICATE")
    parser.add_argument(
        "--expect",
        metavar="QUESTION",
        help="what it has to be about: the words of `dpsub account`, or the JSON of its answer "
        "(a text that begins with { or a file that ends in .json)",
    )
    arguments = parser.parse_args()
    verdict = judged(arguments.certificate, arguments.expect)
    return verdict.status if is_told([*verdict.statement, *verdict.lines]) else NOT_TOLD


def is_told(lines: list[str]) -> bool:
    """Whether a verdict could be written. One that nobody can read has a status of its own, as that
    of a program that breaks would say `refuted`."""
    if sys.stdout is None:
        return complain("it is closed")
    try:
        # a file may hold any words, and a terminal not all letters
        sys.stdout.reconfigure(errors="backslashreplace")
        print("\n".join(lines), flush=True)
    except OSError as error:
        drop(sys.stdout)
        return complain(error.strerror)
    return True


def complain(reason: str | None) -> bool:
    # where there is no place for this either the status tells
    try:
        print(
            f"verifier: the verdict cannot be written to the standard output: {reason}; send it "
            "elsewhere",
            file=sys.stderr,
            flush=True,
        )
    except OSError:
        drop(sys.stderr)
    return False


def drop(stream: TextIO) -> None:
    """Throw away what a stream could not write: the interpreter would report it at the end, with a
    status of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    sys.exit(main())
