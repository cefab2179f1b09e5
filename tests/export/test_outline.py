"""The tree as lines, against a naive twin."""

from hypothesis import given
from hypothesis import strategies as st
from sessiontree.export.outline import Outline


def naive(parents):
    """The same by recursion: (order, depth by row)."""
    order, depth = [], {}
    inside = [p if 0 <= p < len(parents) and p != row else -1 for row, p in enumerate(parents)]

    def lay(row, at):
        if row in depth:
            return
        depth[row] = at
        order.append(row)
        below = [child for child, parent in enumerate(inside) if parent == row]
        for child in below:
            lay(child, at + (len(below) > 1))

    for row, parent in enumerate(inside):
        if parent < 0:
            lay(row, 0)
    for row in range(len(parents)):
        lay(row, 0)
    return order, [depth[row] for row in range(len(parents))]


trees = st.lists(st.integers(-2, 12), max_size=14)


@given(trees)
def test_lines_are_those_of_the_naive_twin(parents):
    """Any parents, cycles and missing ones included, give every row once, in the order of a walk."""
    outline = Outline(parents)
    order, depth = naive(parents)
    assert (list(outline.order), list(outline.depth)) == (order, depth)
    assert [outline.order[line] for line in outline.line] == list(range(len(parents)))


@given(trees, st.lists(st.integers(-2, 14), max_size=6))
def test_growing_gives_what_laying_anew_gives(parents, more):
    """Appended rows, one at a time or together, end up where a new outline has them."""
    # A parent that is not there yet is none: when it comes, an index names another parent for the older row.
    parents = [parent if parent < len(parents) else -2 for parent in parents]
    more = [parent if parent < len(parents) + at else -2 for at, parent in enumerate(more)]
    together, one_by_one = Outline(parents), Outline(parents)
    together.grow(more)
    for parent in more:
        one_by_one.grow([parent])
    wanted = Outline([*parents, *more])
    for outline in (together, one_by_one):
        assert list(outline.order) == list(wanted.order)
        assert list(outline.depth) == list(wanted.depth)
        assert list(outline.line) == list(wanted.line)


@given(trees.filter(len), st.data())
def test_the_deepest_is_where_the_newest_children_lead(parents, data):
    """It ends, also in a cycle, at a row that has no child, or that was met."""
    row = data.draw(st.integers(0, len(parents) - 1))
    end, met = row, set()
    while end not in met:
        met.add(end)
        below = [child for child, parent in enumerate(parents) if parent == end != child]
        end = below[-1] if below else end
    assert Outline(parents).deepest(row) == end


def test_a_long_chain_needs_no_stack():
    """200,000 entries in a chain are laid, and grown, without recursion."""
    outline = Outline(range(-1, 199_999))
    outline.grow([199_999])
    assert outline.deepest(0) == 200_000
    assert max(outline.depth) == 0
