/*
 * Arithmetic for which Rust has no type: long double, and products of complex numbers
 * by the rules of C (Annex G: an infinite operand gives an infinite product).
 *
 * Values are passed as bytes in this machine's order, of any alignment. Bytes of a long double
 * that carry no value are zero in results. No function keeps a pointer or can fail.
 */
#include <complex.h>
#include <string.h>

_Static_assert(sizeof(long double) == 16, "PTL_LONG_DOUBLE has 16 bytes");
_Static_assert(sizeof(long double complex) == 32, "PTL_LONG_DOUBLE_COMPLEX has 32 bytes");

/* x87 keeps ten bytes of sixteen; a store may leave the others as they were. */
enum { VALUE_BYTES = __LDBL_MANT_DIG__ == 64 ? 10 : 16 };

static long double real_at(const unsigned char *bytes)
{
    long double value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static void put_real(unsigned char *bytes, long double value)
{
    memset(bytes, 0, sizeof value);
    memcpy(bytes, &value, VALUE_BYTES);
}

static long double complex complex_at(const unsigned char *bytes)
{
    long double complex value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static void put_complex(unsigned char *bytes, long double complex value)
{
    put_real(bytes, creall(value));
    put_real(bytes + sizeof(long double), cimagl(value));
}

/* -1 less, 0 equal, 1 greater, 2 unordered. */
int lintel_long_double_compare(const unsigned char *left, const unsigned char *right)
{
    long double a = real_at(left), b = real_at(right);
    return a < b ? -1 : a == b ? 0 : a > b ? 1 : 2;
}

void lintel_long_double_sum(const unsigned char *left, const unsigned char *right,
                            unsigned char *result)
{
    put_real(result, real_at(left) + real_at(right));
}

void lintel_long_double_product(const unsigned char *left, const unsigned char *right,
                                unsigned char *result)
{
    put_real(result, real_at(left) * real_at(right));
}

/* 1 equal, 0 not. */
int lintel_long_double_complex_equal(const unsigned char *left, const unsigned char *right)
{
    return complex_at(left) == complex_at(right);
}

void lintel_long_double_complex_sum(const unsigned char *left, const unsigned char *right,
                                    unsigned char *result)
{
    put_complex(result, complex_at(left) + complex_at(right));
}

void lintel_long_double_complex_product(const unsigned char *left, const unsigned char *right,
                                        unsigned char *result)
{
    put_complex(result, complex_at(left) * complex_at(right));
}

void lintel_float_complex_product(const unsigned char *left, const unsigned char *right,
                                  unsigned char *result)
{
    float complex a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    a *= b;
    memcpy(result, &a, sizeof a);
}

void lintel_double_complex_product(const unsigned char *left, const unsigned char *right,
                                   unsigned char *result)
{
    double complex a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    a *= b;
    memcpy(result, &a, sizeof a);
}
