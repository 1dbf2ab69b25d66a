# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Recipe for Spack. Put this folder into a repository of recipes as packages/lintel, give it the archive that
# `cargo xtask vendor` makes, and install:
#
#     spack install lintel

import os

from spack.package import *


class Lintel(Package):
    """Portals 4, Portals 3.3 and CCI in software, over shared memory, UDP and libfabric."""

    maintainers = []
    license("MIT OR Apache-2.0")

    # The archive has all dependencies: nothing is downloaded during the build.
    url = "file://" + os.path.join(os.path.dirname(__file__), "lintel-0.1.0-vendored.tar.gz")
    version("0.1.0", expand=True)

    variant("ofi", default=False, description="Messages between nodes by libfabric as well")
    variant("book", default=False, description="The book as HTML")

    depends_on("c", type="build")
    depends_on("rust@1.85:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mdbook", type="build", when="+book")
    depends_on("libfabric@1.17:", type="run", when="+ofi")

    requires("platform=linux")
    requires("target=x86_64:")

    def install(self, spec, prefix):
        cargo = which("cargo", required=True)
        cargo("xtask", "dist", "--prefix", prefix)

    def setup_run_environment(self, env):
        # The library loads libfabric when PTL_NAL asks for it.
        if self.spec.satisfies("+ofi"):
            env.prepend_path("LD_LIBRARY_PATH", self.spec["libfabric"].prefix.lib)
