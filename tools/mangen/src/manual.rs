//! The manuals: which pages belong together, and what they are called.

/// A set of pages that refer to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manual {
    /// The name of its overview in section 7.
    pub name: &'static str,
    /// The section of its functions' pages.
    pub functions: &'static str,
    /// The interface and its version.
    pub interface: &'static str,
    /// The interface without the version's minor number.
    pub family: &'static str,
    /// The overview, without the list of functions.
    pub(crate) overview: &'static str,
}

/// Portals 4, with its collective operations.
pub const PORTALS4: Manual = Manual {
    name: "portals4",
    functions: "3",
    interface: "Portals 4.3",
    family: "Portals 4",
    overview: include_str!("../../../doc/man/portals4.7"),
};

/// Portals 3.3, whose functions bear the names of Portals 4's: `man 3portals3 PtlPut`.
pub const PORTALS3: Manual = Manual {
    name: "portals3",
    functions: "3portals3",
    interface: "Portals 3.3",
    family: "Portals 3.3",
    overview: include_str!("../../../doc/man/portals3.7"),
};

/// CCI 2, the Common Communication Interface.
pub const CCI: Manual = Manual {
    name: "cci",
    functions: "3cci",
    interface: "CCI 2.2",
    family: "CCI 2",
    overview: include_str!("../../../doc/man/cci.7"),
};

/// All of them.
pub const MANUALS: [Manual; 3] = [PORTALS4, PORTALS3, CCI];

impl Manual {
    /// The manual of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Manual> {
        MANUALS.into_iter().find(|manual| manual.name == name)
    }

    /// Where the page of a function belongs below a man directory: `man3/PtlPut.3`.
    #[must_use]
    pub fn path_of(&self, function: &str) -> String {
        format!("man3/{function}.{}", self.functions)
    }

    /// The name of the page of types and constants.
    pub(crate) fn types(&self) -> String {
        format!("{}_types", self.name)
    }
}
