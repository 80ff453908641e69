/* Presets by name: exactly, as the Hugging Face hub spells them, and nearly.
 *
 * A name is read as a family and a size: "meta-llama/Llama-3.1-8B-Instruct" is llama31 of 8e9
 * parameters.  Its owner, case, dashes and points say nothing, nor does what stands behind the
 * size, but for words that change the shape. */
#include "workload/workload.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN_MAX 64

/* Words of a name that say nothing of the shape. */
static const char idle_words[] =
    "meta instruct chat it hf base pt preview thinking lora qlora sft dpo full finetune "
    "finetuning pretrain pretraining training cased uncased llm model nvidia bf16 "
    "reasoning c4ai";
/* Words that do, wherever they stand. */
static const char shape_words[] = "moe vl vision omni audio hybrid tiny toy proxy";

/* Families with the shapes of another one, where they have no preset of that size themselves:
 * "family:other". */
static const char same[] =
    "llama:llama2 llama1:llama2 llama31:llama3 llama33:llama3 llama31nemotron:llama3 "
    "codellama:llama2 vicuna:llama2 alpaca:llama2 openllama:llama2 "
    "deepseekr1distillllama:llama3 deepseekr1distillqwen:qwen25 qwen:qwen15 qwen2:qwen25 "
    "qwen2math:qwen25 qwen25math:qwen25 qwen25coder:qwen25 qwq:qwen25 qwen3coder:qwen3 "
    "zephyr:mistral mathstral:mistral smollm:smollm2 yi15:yi bloomz:bloom gpt:gpt3 "
    "megatrongpt:gpt3 megatronturingnlg:mtnlg starcoderbase:starcoder chatglm2:chatglm3 "
    "glm46:glm45 glm47:glm45 mistralsmall31:mistralsmall mistralsmall32:mistralsmall "
    "hermes3llama31:llama3 openhermes25mistral:mistral deepseekr1qwen3:qwen3 "
    "internlm25:internlm2 codegemma:gemma deepseekr1:deepseekv3 "
    "deepseekv31:deepseekv3 deepseekv25:deepseekv2 deepseekcoderv2:deepseekv2 "
    "deepseekcoderv2lite:deepseekv2lite phi35mini:phi3mini phi4plus:phi4 flant5:t5 "
    "flant5base:t5base flant5large:t5large";

/* Names without the size that presets have, or with one that they have not: "name:preset". */
static const char called[] =
    "bloom:bloom-176b gpt2-small:gpt2 gpt-2:gpt2 gpt2-124m:gpt2 gpt2-355m:gpt2-medium "
    "gpt2-345m:gpt2-medium "
    "gpt2-774m:gpt2-large gpt2-1.5b:gpt2-xl gpt3:gpt3-175b phi-3-3.8b:phi-3-mini "
    "phi-3-14b:phi-3-medium gpt3-530b:mt-nlg-530b phi-1.5-1.3b:phi-1.5 "
    "llama-30b:llama-33b gpt-neox:gpt-neox-20b mistral-small:mistral-small-24b "
    "magistral-small:mistral-small-24b devstral-small:mistral-small-24b "
    "mistral-large:mistral-large-123b mistral-large-2:mistral-large-123b "
    "gpt-530b:mt-nlg-530b";

struct spelled {
    char family[PLAIN_MAX];
    double size_b; /* 1e9 parameters, or of each of several experts; 0: not said */
};

/* "8b", "1.5b", "350m", "7b1", "8x7b", "1t".  @return 0: it is no size */
static double size_of (const char *word)
{
    char *end;
    double n = strtod (word, &end), x;

    if (!isdigit ((unsigned char) word[0]) || end == word)
        return 0.0;
    if (*end == 'x' &&
        isdigit ((unsigned char) end[1])) { /* experts, apart from all others */
        x = strtod (end + 1, &end);
        n = strcmp (end, "b") == 0 ? 1e4 * n + x : 0.0;
        return n;
    }
    n *= *end == 'b' ? 1.0 : *end == 'm' ? 1e-3 : *end == 't' ? 1e3 : 0.0;
    if (n > 0.0 && *end == 'b' && isdigit ((unsigned char) end[1])) /* BLOOM's */
        n += (*++end - '0') / 10.0;
    return *end && end[1] == '\0' ? n : 0.0;
}

/* Is it a size that stands in brackets from here on, "6.7B", "8 B parameters", "30B-A3B"?  Not of
 * tokens, of a context or of another model: "10B tokens". */
static bool is_size (const char *s)
{
    char said[PLAIN_MAX];
    size_t n = 0, unit;

    for (; *s && !strchr ("-,;)", *s); s++)
        if (*s != ' ' && n < PLAIN_MAX - 1)
            said[n++] = (char) tolower ((unsigned char) *s);
    said[n] = '\0';
    unit = strspn (said, "0123456789.x");
    unit += said[unit] ? 1 + strspn (said + unit + 1, "0123456789") : 0;
    if (said[unit] &&
        !text_has_word ("params parameters total active dense moe model", said + unit))
        return false;
    said[unit] = '\0';
    return size_of (said) > 0.0;
}

/* The next word of a name in lower case: letters, digits and points between digits.  What stands in
 * brackets are remarks, but for a size, "GPT-3 (6.7B)".
 * @return what follows; NULL: there is none */
static const char *next_word (const char *s, char word[PLAIN_MAX])
{
    bool remark = false;
    size_t n = 0;

    for (; *s && !isalnum ((unsigned char) *s); s++)
        remark = remark || *s == '(';
    if (*s == '\0' || (remark && !is_size (s)))
        return NULL;
    for (; isalnum ((unsigned char) *s) || (*s == '.' && n > 0); s++)
        if (n < PLAIN_MAX - 1)
            word[n++] = (char) tolower ((unsigned char) *s);
    word[n] = '\0';
    return s;
}

/* A date, a context ("128k"), an early version ("v0.1"), or the experts' size ("a3b") of a name. */
static bool is_idle (const char *word)
{
    size_t digits = strspn (word, "0123456789");

    return text_has_word (idle_words, word) || (digits >= 4 && word[digits] == '\0') ||
           (digits > 0 && strcmp (word + digits, "k") == 0) ||
           (word[0] == 'v' && (word[1] == '0' || word[1] == '1') && strchr (word, '.')) ||
           (word[0] == 'a' && size_of (word + 1) > 0.0);
}

static void add_family (struct spelled *x, const char *word)
{
    size_t n = strlen (x->family);

    for (; *word && n < PLAIN_MAX - 1; word++)
        if (*word != '.')
            x->family[n++] = *word;
    x->family[n] = '\0';
}

/* Letters with a size behind them: "mistral7b".  @return 0: no such thing */
static double glued_size (char *word)
{
    size_t n = strspn (word, "abcdefghijklmnopqrstuvwxyz");
    double size = n > 1 ? size_of (word + n) : 0.0;

    if (size > 0.0)
        word[n] = '\0';
    return size;
}

/* A name without its owner, which no blank stands in. */
static const char *without_owner (const char *name)
{
    size_t n = strcspn (name, " (");

    while (n > 0 && name[n - 1] != '/')
        n--;
    return name + n;
}

static struct spelled read_name (const char *name)
{
    struct spelled x = {0};
    char word[PLAIN_MAX], unit[PLAIN_MAX];

    for (const char *s = without_owner (name); (s = next_word (s, word));) {
        const char *after = next_word (s, unit);
        double size = size_of (word);

        if (after && (strcmp (unit, "b") == 0 || strcmp (unit, "m") == 0) &&
            strspn (word, "0123456789.") == strlen (word)) { /* "7 B" */
            strncat (word, unit, sizeof word - strlen (word) - 1);
            size = size_of (word);
            s = after;
        }
        if (x.size_b <= 0.0 && size <= 0.0 && !is_idle (word))
            size = glued_size (word);
        else if (size > 0.0)
            word[0] = '\0';
        if (word[0] &&
            ((x.size_b <= 0.0 && !is_idle (word)) || text_has_word (shape_words, word)))
            add_family (&x, word);
        if (x.size_b <= 0.0)
            x.size_b = size;
    }
    return x;
}

/* The size that a name says and that of a preset are one, exactly or as counts are rounded. */
#define SIZE_ROUNDED 0.035
static bool size_is (double said, double own_b, const struct workload_model *m,
                     bool exactly)
{
    if (exactly)
        return fabs (said - own_b) < 1e-9;
    if (said <= 0.0 || said >= 1e4)
        return false;
    return fabs (said * 1e9 / workload_model_params (m) - 1.0) < SIZE_ROUNDED ||
           (m->experts > 0 &&
            fabs (said * 1e9 / workload_active_params (m) - 1.0) < SIZE_ROUNDED);
}

/* The preset of a family and a size, or the only one of a family where no size is said. */
static const struct workload_model *preset_of (const char *family, double size_b)
{
    int n;
    const struct workload_model *all = workload_presets (&n), *only = NULL;
    int of_family = 0;

    for (int exactly = 1; exactly >= 0; exactly--)
        for (int i = 0; i < n; i++) {
            struct spelled own;

            if (tolower ((unsigned char) all[i].name[0]) != family[0])
                continue; /* a preset's name begins with its family */
            own = read_name (all[i].name);
            if (strcmp (own.family, family) != 0)
                continue;
            if (size_is (size_b, own.size_b, &all[i], exactly))
                return &all[i];
            only = &all[i];
            of_family += exactly;
        }
    return size_b <= 0.0 && of_family == 1 ? only : NULL;
}

const struct workload_model *workload_preset_find (const char *name)
{
    int n;
    const struct workload_model *all = workload_presets (&n);

    for (int i = 0; i < n; i++)
        if (strcmp (all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

/* The name in letters and digits: "llama38b". */
static void plain (const char *name, char out[PLAIN_MAX])
{
    char word[PLAIN_MAX];

    out[0] = '\0';
    for (const char *s = without_owner (name); (s = next_word (s, word));)
        if (!is_idle (word))
            strncat (out, word, PLAIN_MAX - 1 - strlen (out));
}

/* The preset whose name has the same letters, digits and points: "Llama38B". */
static const struct workload_model *joined (const char *name)
{
    char asked[PLAIN_MAX], own[PLAIN_MAX];
    int n;
    const struct workload_model *all = workload_presets (&n);

    plain (name, asked);
    for (int i = 0; i < n; i++) {
        if (tolower ((unsigned char) all[i].name[0]) != asked[0])
            continue; /* no preset's name begins with an idle word */
        plain (all[i].name, own);
        if (strcmp (asked, own) == 0)
            return &all[i];
    }
    return NULL;
}

/* The next "a:b" of a list.  @return false: there is none */
static bool next_pair (const char **list, char a[PLAIN_MAX], char b[PLAIN_MAX])
{
    int n = 0;

    if (sscanf (*list, " %63[^:]:%63s%n", a, b, &n) < 2)
        return false;
    *list += n;
    return true;
}

const struct workload_model *workload_preset_meant (const char *name)
{
    struct spelled asked = read_name (name);
    const struct workload_model *m =
        asked.family[0] ? preset_of (asked.family, asked.size_b) : NULL;
    char name_of[PLAIN_MAX], as[PLAIN_MAX];

    for (const char *list = called; !m && next_pair (&list, name_of, as);) {
        struct spelled own = read_name (name_of);

        if (strcmp (own.family, asked.family) == 0 &&
            fabs (own.size_b - asked.size_b) < 1e-9)
            m = workload_preset_find (as);
    }
    for (const char *list = same; !m && next_pair (&list, name_of, as);)
        if (strcmp (name_of, asked.family) == 0)
            m = preset_of (as, asked.size_b);
    return m ? m : joined (name);
}

/* "moe", "olmoe", "moe16"; "experts", "8experts"; a family whose models all have them. */
static bool says_experts (const char *word)
{
    static const char families[] = "switch gshard glam mixtral dbrx";
    size_t n = strlen (word);

    while (n > 0 && isdigit ((unsigned char) word[n - 1]))
        n--;
    return (n >= 3 && strncmp (word + n - 3, "moe", 3) == 0) ||
           strncmp (word + strspn (word, "0123456789"), "expert", 6) == 0 ||
           text_has_word (families, word);
}

bool workload_name_has_experts (const char *name)
{
    char word[PLAIN_MAX];
    bool has = false;

    for (const char *s = without_owner (name); (s = next_word (s, word));)
        has = has || says_experts (word) ||
              (word[0] == 'a' && size_of (word + 1) > 0.0); /* active ones */
    return has || read_name (name).size_b >= 1e4;
}

double workload_name_params (const char *name)
{
    struct spelled x = read_name (name);

    for (const char *w = shape_words; *w; w += strspn (w, " ")) {
        char word[PLAIN_MAX];
        size_t n = strcspn (w, " ");

        snprintf (word, sizeof word, "%.*s", (int) n, w);
        if (strstr (x.family, word))
            return 0.0;
        w += n;
    }
    return x.size_b < 1e4 ? x.size_b * 1e9 : 0.0;
}

void workload_presets_near (const char *name, struct text *out)
{
    char asked[PLAIN_MAX], own[PLAIN_MAX];
    int n, named = 0;
    const struct workload_model *all = workload_presets (&n);

    plain (name, asked);
    /* The nearest first; over a third of the name changed, it is another one.  What begins with
     * the name is as near as the last. */
    for (int d = 1, most = (int) strlen (asked) / 3; d <= most && named < 3; d++)
        for (int i = 0; i < n && named < 3; i++) {
            plain (all[i].name, own);

            int apart = text_distance (asked, own);

            if (apart > most && strncmp (asked, own, strlen (asked)) == 0)
                apart = most;
            if (apart == d)
                text_add (out, "%s%s", named++ > 0 ? ", " : "", all[i].name);
        }
}
