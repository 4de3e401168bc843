"""The root of a run's lines is that of RFC 6962."""

from __future__ import annotations

import base64
import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shared_data import shared

from playhead.ledger.merkle import EMPTY_ROOT, Tree

# The leaves and roots that implementations of Certificate Transparency check each other with.
LEAVES = [
    bytes.fromhex(leaf)
    for leaf in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def definition(leaves: list[bytes]) -> bytes:
    """Compute the root as section 2.1 of RFC 6962 words it."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\x01" + definition(leaves[:split]) + definition(leaves[split:])).digest()


def test_the_known_roots_are_met() -> None:
    tree = Tree()
    assert tree.root() == EMPTY_ROOT == ROOTS[0]
    for size, leaf in enumerate(LEAVES, 1):
        tree.add(leaf)
        assert (tree.size, tree.root()) == (size, ROOTS[size])


@given(st.lists(st.binary(max_size=8), max_size=70))
def test_any_lines_have_the_root_of_the_definition(leaves: list[bytes]) -> None:
    tree = Tree()
    for leaf in leaves:
        tree.add(leaf)
    assert tree.root() == definition(leaves).hex()
    assert tree.root() == definition(leaves).hex(), "asking changes nothing"


def test_the_root_of_thousands_of_lines_holds_few_hashes() -> None:
    tree = Tree()
    leaves = [b"%d" % number for number in range(5000)]
    for leaf in leaves:
        tree.add(leaf)
    assert tree.root() == definition(leaves).hex()
    assert len(tree._peaks) == (5000).bit_count()


@pytest.mark.parametrize("sort", ["inclusion", "consistency"])
def test_the_roots_of_public_vectors_are_met(sort: str) -> None:
    seen = 0
    for path in sorted(shared("vectors/rfc6962").glob(f"{sort}/*/happy-path.json")):
        vector = json.loads(path.read_text())
        pairs = [
            (vector.get("treeSize"), vector.get("root")),
            (vector.get("size1"), vector.get("root1")),
            (vector.get("size2"), vector.get("root2")),
        ]
        for size, root in pairs:
            if size and root and size <= len(LEAVES):
                assert base64.b64decode(root).hex() == ROOTS[size]
                assert definition(LEAVES[:size]).hex() == ROOTS[size]
                seen += 1
    assert seen
