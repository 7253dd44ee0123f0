/*
 * A library that test_library.c opens and that says which one it is.
 */
__attribute__((visibility("default"))) int
probe(void)
{
    return PROBE;
}
