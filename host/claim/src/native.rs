//! Bindings of `native/long_double.c`: arithmetic for which Rust has no type.

/// Bytes of a `float complex`.
pub(crate) type Bytes8 = [u8; 8];
/// Bytes of a `long double` or a `double complex`.
pub(crate) type Bytes16 = [u8; 16];
/// Bytes of a `long double complex`.
pub(crate) type Bytes32 = [u8; 32];

// SAFETY: each declaration matches its definition in native/long_double.c: pointers to
// as many bytes as the array types say, read or (the third) written, none kept.
unsafe extern "C" {
    #[link_name = "lintel_long_double_compare"]
    pub(crate) safe fn long_double_compare(a: &Bytes16, b: &Bytes16) -> i32;
    #[link_name = "lintel_long_double_sum"]
    pub(crate) safe fn long_double_sum(a: &Bytes16, b: &Bytes16, result: &mut Bytes16);
    #[link_name = "lintel_long_double_product"]
    pub(crate) safe fn long_double_product(a: &Bytes16, b: &Bytes16, result: &mut Bytes16);
    #[link_name = "lintel_long_double_complex_equal"]
    pub(crate) safe fn long_double_complex_equal(a: &Bytes32, b: &Bytes32) -> i32;
    #[link_name = "lintel_long_double_complex_sum"]
    pub(crate) safe fn long_double_complex_sum(a: &Bytes32, b: &Bytes32, result: &mut Bytes32);
    #[link_name = "lintel_long_double_complex_product"]
    pub(crate) safe fn long_double_complex_product(a: &Bytes32, b: &Bytes32, result: &mut Bytes32);
    #[link_name = "lintel_float_complex_product"]
    pub(crate) safe fn float_complex_product(a: &Bytes8, b: &Bytes8, result: &mut Bytes8);
    #[link_name = "lintel_double_complex_product"]
    pub(crate) safe fn double_complex_product(a: &Bytes16, b: &Bytes16, result: &mut Bytes16);
}
