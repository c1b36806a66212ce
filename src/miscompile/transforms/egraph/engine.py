"""The e-graph: classes of terms that are known to be equal, each with the type of its value.

Terms are hash-consed, so that equal terms are one node; a union-find records merged classes; congruence (equal operands
make equal terms) is restored once per round and not after every union. Source: Willsey et al., egg: Fast and Extensible
Equality Saturation (POPL 2021), sections 3 and 4.
"""

from miscompile.transforms.rules.terms import Symbol, TermType

NodeKey = tuple[int, ...]
"""A term: the number of its symbol, then the classes of its operands."""

NodeSignature = int
"""Number of an (operator, output, arity) triple, by which patterns look up candidate terms."""

Index = dict[NodeSignature, dict[int, list[NodeKey]]]
"""Terms by signature and class at the time when the index was made."""

WORD = 1 << 64
_MASK = WORD - 1
_ODD = 0x9E3779B97F4A7C15

_SIGNATURES: dict[tuple[str, int, int], NodeSignature] = {}
"""The number of each signature in use; there are few more than the language has operators."""


def signature(op: str, output: int, arity: int) -> NodeSignature:
    """Return the number of a signature; the same within one process, and never shown outside."""
    return _SIGNATURES.setdefault((op, output, arity), len(_SIGNATURES))


def mix(*words: int) -> int:
    """Return 64 bits that depend on every word and its position: a cheap hash that is equal in every process.

    The words are seeds, keys of values and numbers of rules; the result ranks choices (the finaliser of SplitMix64).
    """
    state = 0
    for word in words:
        state = (state * 0x9E3779B97F4A7C15 + word + 0x632BE59BD9B4E019) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state


def lottery(lot: int, key: int) -> int:
    """Return 64 random bits for `key` under `lot`, itself 64 bits of `mix`; cheaper than another call of `mix`.

    Only the high bits depend on all bits of both, so a caller must compare or shift the result and not divide it.
    """
    return (key ^ lot) * _ODD & _MASK


class EGraph:
    """Classes of equal terms. Classes and nodes are numbered in the order of their creation.

    A node is a term whose operands are classes. When two classes become one, the older keeps its number, its stable key
    and its type, so that those of the program's values do not change. `births` of nodes and `keys` of classes do not
    depend on numbers: they identify the value of the program and the rule from which something was created.
    """

    __slots__ = (
        "_dirty", "_ids", "_nodes", "_parents", "_signatures", "births", "keys", "members", "origins", "owners",
        "shapes", "symbols", "terms", "types", "uses",
    )  # fmt: skip

    def __init__(self) -> None:
        self.symbols: list[Symbol] = []
        self.terms: list[NodeKey | None] = []
        """The term of each node; None for one that became the same as another."""
        self.shapes: list[NodeSignature] = []
        self.owners: list[int] = []
        self.births: list[int] = []
        self.origins: dict[int, int] = {}
        """Nodes of the program, with the position of the ONNX node; -1 for inputs and initialisers."""
        self.types: list[TermType | None] = []
        self.keys: list[int] = []
        self.members: dict[int, list[int]] = {}
        self.uses: list[list[int]] = []
        self._parents: list[int] = []
        self._ids: dict[Symbol, int] = {}
        self._nodes: dict[NodeKey, int] = {}
        self._signatures: dict[tuple[int, int], NodeSignature] = {}
        self._dirty: list[int] = []

    def __len__(self) -> int:
        """Return the number of different terms."""
        return len(self._nodes)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.members)

    def find(self, number: int) -> int:
        """Return the current number of the class `number`."""
        parents = self._parents
        while parents[number] != number:
            parents[number] = number = parents[parents[number]]
        return number

    def intern(self, symbol: Symbol) -> int:
        """Return the number of a symbol."""
        found = self._ids.get(symbol)
        if found is None:
            found = self._ids[symbol] = len(self.symbols)
            self.symbols.append(symbol)
        return found

    def add(self, symbol: int, children: tuple[int, ...], kind: TermType | None, birth: int) -> int:
        """Return the class of a term, creating it if necessary; `kind` and `birth` are those of a new one.

        Operands must be canonical classes, as `find` returns them.
        """
        key = (symbol, *children)
        node = self._nodes.get(key)
        if node is not None:
            return self.find(self.owners[node])
        number = len(self._parents)
        self._parents.append(number)
        self.types.append(kind)
        self.keys.append(birth)
        self.uses.append([])
        self.members[number] = []
        self._put(key, number, birth)
        return number

    def attach(self, symbol: int, children: tuple[int, ...], number: int, birth: int) -> None:
        """Add a term to a class, as one more way to compute it."""
        key = (symbol, *children)
        node = self._nodes.get(key)
        if node is None:
            self._put(key, self.find(number), birth)
        else:
            self.unite(number, self.owners[node])

    def node(self, symbol: int, children: tuple[int, ...]) -> int | None:
        """Return the node of a term, if there is one."""
        return self._nodes.get((symbol, *children))

    def _put(self, key: NodeKey, number: int, birth: int) -> None:
        node = len(self.terms)
        what = key[0], len(key)
        shape = self._signatures.get(what)
        if shape is None:
            name, _, output = self.symbols[key[0]]
            shape = self._signatures[what] = signature(name, output, len(key) - 1)
        self.terms.append(key)
        self.shapes.append(shape)
        self.owners.append(number)
        self.births.append(birth)
        self.members[number].append(node)
        self._nodes[key] = node
        for child in set(key[1:]) if len(key) > 2 else key[1:]:
            self.uses[child].append(node)

    def unite(self, one: int, other: int) -> bool:
        """Merge two classes and tell whether they were different; the caller must call `rebuild` afterwards."""
        one, other = self.find(one), self.find(other)
        if one == other:
            return False
        if other < one:
            one, other = other, one
        self._parents[other] = one
        self.members[one].extend(self.members.pop(other))
        self.uses[one].extend(self.uses[other])
        self.uses[other] = []
        self._dirty.append(one)
        return True

    def rebuild(self) -> None:
        """Restore congruence: terms whose operands have become the same classes become one term."""
        while self._dirty:
            waiting = dict.fromkeys(map(self.find, self._dirty))
            self._dirty = []
            for number in waiting:
                self._repair(self.find(number))

    def _repair(self, number: int) -> None:
        users: dict[int, None] = {}
        for node in self.uses[number]:
            old = self.terms[node]
            if old is None:
                continue
            new = (old[0], *map(self.find, old[1:]))
            if new != old:
                del self._nodes[old]
                twin = self._nodes.setdefault(new, node)
                if twin != node:
                    self._merge(node, twin)
                    node = twin
                else:
                    self.terms[node] = new
            users[node] = None
        self.uses[number] = [*users]

    def _merge(self, node: int, twin: int) -> None:
        """Remove `node`, which has become the same term as `twin`."""
        self.terms[node] = None
        if node in self.origins:
            place = self.origins.pop(node)
            self.origins[twin] = min(place, self.origins.get(twin, place))
        self.unite(self.owners[node], self.owners[twin])

    def nodes_of(self, number: int) -> list[int]:
        """Return the nodes of a class in the order in which they were added."""
        return [node for node in self.members[number] if self.terms[node] is not None]

    def index(self) -> Index:
        """Return all terms by signature and class. Only right after `rebuild`."""
        found: Index = {}
        terms, shapes = self.terms, self.shapes
        for number, nodes in self.members.items():
            for node in nodes:
                key = terms[node]
                if key is not None:
                    found.setdefault(shapes[node], {}).setdefault(number, []).append(key)
        return found
