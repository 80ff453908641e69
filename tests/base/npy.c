/* .npy matrices: both byte orders and element sizes, and every way to be wrong. */
#include "tests/lib/folder.h"

#include "base/npy.h"

/* Write a version-1 file whose header is `dict` and whose data are `len` bytes, so far off their
 * alignment. */
static void write_npy (const char *dict, size_t off, const void *data, size_t len)
{
    FILE *f = fopen (in_folder ("m"), "wb");
    size_t n = strlen (dict) + 1, pad = (64 - (10 + n) % 64) % 64 + off;
    unsigned size = (unsigned) (n + pad);

    fwrite ("\x93NUMPY\x01\x00", 1, 8, f);
    fputc ((int) (size & 255), f);
    fputc ((int) (size >> 8), f);
    fputs (dict, f);
    for (size_t i = 0; i < pad; i++)
        fputc (' ', f);
    fputc ('\n', f);
    fwrite (data, 1, len, f);
    fclose (f);
}

static void reverse (unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        unsigned char x = p[i];

        p[i] = p[n - 1 - i];
        p[n - 1 - i] = x;
    }
}

static double entry (const struct npy *m, size_t i, size_t j)
{
    return m->v ? m->v[i * m->n + j] : (double) m->f[i * m->n + j];
}

static void expect_1234 (const char *dict, const void *data, size_t len)
{
    struct npy m;
    struct error err = {""};

    for (size_t off = 0; off < 2; off++) {
        write_npy (dict, off, data, len);
        ok (npy_map (in_folder ("m"), &m, &err), &err);
        assert_int_equal (m.n, 2);
        for (size_t i = 0; i < 2; i++)
            for (size_t j = 0; j < 2; j++)
                assert_true (entry (&m, i, j) == (double) (2 * i + j + 1));
        npy_close (&m);
    }
}

TEST (layouts)
{
    double d[] = {1, 2, 3, 4}, big[] = {1, 2, 3, 4}, fortran[] = {1, 3, 2, 4};
    float f[] = {1, 2, 3, 4}, both[] = {1, 3, 2, 4};

    for (int i = 0; i < 4; i++) {
        reverse ((unsigned char *) &big[i], 8);
        reverse ((unsigned char *) &both[i], 4);
    }
    expect_1234 ("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }", d, 32);
    expect_1234 ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", f, 16);
    expect_1234 ("{'descr': '>f8', 'fortran_order': False, 'shape': (2, 2), }", big, 32);
    expect_1234 ("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }", fortran,
                 32);
    expect_1234 ("{'descr': '>f4', 'fortran_order': True, 'shape': (2, 2), }", both, 16);
}

TEST (faults)
{
    static const struct {
        const char *dict;
        size_t len;
        const char *says;
    } bad[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }", 31, "bytes"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }", 33, "bytes"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (2, 2), }", 32,
         "f4 or f8, found '<i8'"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }", 32, "square"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 4), }", 32,
         "square matrix, found shape (1, 4)"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 0), }", 0, "square"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999, 99999999), }", 32,
         "square"},
        {"{'descr': '<f8'}", 32, "lacks"}};
    double d[5] = {0};
    struct npy m = {0};
    struct error err = {""};
    FILE *f;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_npy (bad[i].dict, 0, d, bad[i].len);
        assert_int_equal (npy_map (in_folder ("m"), &m, &err), ST_INVALID);
        if (!strstr (err.text, bad[i].says))
            fail_msg ("\"%s\" does not say \"%s\"", err.text, bad[i].says);
        assert_null (m.v);
    }
    f = fopen (in_folder ("m"), "wb");
    fclose (f);
    assert_int_equal (npy_map (in_folder ("m"), &m, &err), ST_INVALID);
    f = fopen (in_folder ("m"), "wb");
    fwrite ("\x93NUMPY\x01\x00\xff\xff{", 1, 11, f);
    fclose (f);
    assert_int_equal (npy_map (in_folder ("m"), &m, &err), ST_INVALID);
    assert_int_equal (npy_map ("/tmp", &m, &err), ST_INVALID);
    assert_int_equal (npy_map ("/nonexistent.npy", &m, &err), ST_IO);
}

/* What is written is read back in place, with its holes. */
TEST (round_trip)
{
    const double v[] = {0, 1.5, NAN, -2, 3, 1e300, 7, 8, 9};
    struct npy m = {0};
    struct error err = {""};

    assert_int_equal (npy_write (in_folder ("m"), v, 3, &err), ST_OK);
    assert_int_equal (npy_map (in_folder ("m"), &m, &err), ST_OK);
    assert_int_equal (m.n, 3);
    assert_non_null (m.map);
    for (int i = 0; i < 9; i++)
        assert_true (m.v[i] == v[i] || (isnan (m.v[i]) && isnan (v[i])));
    npy_close (&m);
    assert_int_equal (npy_write ("/nonexistent/m.npy", v, 3, &err), ST_IO);
}
