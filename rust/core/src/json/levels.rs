//! Which brackets are open: one bit a level, 1 for an object.

/// Words kept without allocating; with `top` they hold 4,096 levels.
const NEAR: usize = 63;

/// The stack of open brackets.
///
/// `top` holds the innermost `depth % 64` levels (64 of them when that is 0 and
/// something is open), the innermost in its lowest bit; every full word below
/// it lies in `near` and then in `far`, outermost first.
pub(super) struct Levels {
    depth: usize,
    top: u64,
    near: [u64; NEAR],
    far: Vec<u64>,
}

impl Levels {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            depth: 0,
            top: 0,
            near: [0; NEAR],
            far: Vec::new(),
        }
    }

    /// Closes everything.
    pub(super) fn clear(&mut self) {
        self.depth = 0;
        self.top = 0;
        self.far.clear();
    }

    /// How many brackets are open.
    #[inline]
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether the innermost open bracket is an object's; false if none is open.
    #[inline]
    pub(super) fn in_object(&self) -> bool {
        self.top & 1 == 1
    }

    /// The depth, if a member that ends here is to be told: at depth 1 and 2,
    /// when every open bracket is an object's.
    #[inline]
    pub(super) fn told_depth(&self) -> Option<usize> {
        let all = (1 << (self.depth & 3)) - 1;
        (self.depth.wrapping_sub(1) < 2 && self.top & all == all).then_some(self.depth)
    }

    #[inline]
    pub(super) fn push(&mut self, object: bool) {
        if self.depth.is_multiple_of(64) && self.depth > 0 {
            self.save();
        }
        self.top = self.top << 1 | u64::from(object);
        self.depth += 1;
    }

    /// Closes the innermost bracket; the caller has seen that one is open.
    #[inline]
    pub(super) fn pop(&mut self) {
        self.top >>= 1;
        self.depth -= 1;
        if self.depth.is_multiple_of(64) && self.depth > 0 {
            self.restore();
        }
    }

    #[cold]
    fn save(&mut self) {
        match self.near.get_mut(self.depth / 64 - 1) {
            Some(word) => *word = self.top,
            None => self.far.push(self.top),
        }
    }

    #[cold]
    fn restore(&mut self) {
        let word = self.near.get(self.depth / 64 - 1).copied();
        self.top = word.or_else(|| self.far.pop()).unwrap_or_default();
    }
}
