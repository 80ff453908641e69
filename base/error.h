/* Status codes and error text, shared by every room.
 *
 * A function that can fail returns enum status and takes struct error *err last,
 * which may be NULL.  Whoever detects the fault writes where, what was expected and
 * what was found; callers pass the status up.  On failure outputs are untouched.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

enum status {
    ST_OK = 0,
    ST_INVALID, /* bad content, or a degree or batch that does not fit: exit 1 */
    ST_IO,      /* a file cannot be read or written: exit 1 */
    ST_NOMEM,   /* out of memory: exit 1 */
    ST_USAGE,   /* unknown, malformed or contradictory options: exit 2 */
    ST_NOFIT    /* well-formed, but nothing fits or nothing is connected: exit 3 */
};

struct error {
    char text[2048]; /* one line, without a newline; "" when nothing was set */
};

/** Write a message and return the status given, so that a fault is one line.
 *
 *  @param[out] err   may be NULL
 *  @param[in]  code  returned as it is
 *  @param[in]  fmt   printf format; a longer text is cut at the buffer's end, and
 *                    control characters become '?'
 */
enum status err_set (struct error *err, enum status code, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/** Put "prefix: " before the text already in err (a file's name, say). */
void err_prefix (struct error *err, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));

/** Pass a failure up: leave the function with the call's status unless it is ST_OK.  Only
 *  where nothing has to be released. */
#define TRY(call)                     \
    do {                              \
        enum status status_ = (call); \
                                      \
        if (status_ != ST_OK)         \
            return status_;           \
    } while (0)

/** Go on while all is well, where something has to be released in the end: make the call if `st` is
 *  ST_OK, and keep its status there. */
#define THEN(st, call)     \
    do {                   \
        if ((st) == ST_OK) \
            (st) = (call); \
    } while (0)

/** err_set (err, ST_NOMEM, "out of memory").  What was lost is told then; where err is NULL it
 *  is lost, since a caller who wants no message may drop the status too. */
enum status err_nomem (struct error *err);

/** The program's exit code for a status (docs/outputs.md): 0, 1, 2 or 3. */
int status_exit_code (enum status code);

#endif
