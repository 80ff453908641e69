// The same in C++: objects that release themselves.
#include <cstdio>
#include <memory>

#include <linkwise.h>

template <class T, void (*destroy) (T *)> struct deleter {
    void operator() (T *x) const
    {
        destroy (x);
    }
};
using cluster = std::unique_ptr<linkwise_cluster,
                                deleter<linkwise_cluster, linkwise_cluster_destroy>>;
using model =
    std::unique_ptr<linkwise_model, deleter<linkwise_model, linkwise_model_destroy>>;
using plan = std::unique_ptr<linkwise_plan, deleter<linkwise_plan, linkwise_plan_destroy>>;

int main ()
{
    struct linkwise_cluster *c = nullptr;
    struct linkwise_model *m = nullptr;
    struct linkwise_plan *p = nullptr;
    struct linkwise_job job = linkwise_job (4096, 128);
    struct linkwise_estimate e = linkwise_estimate ();
    struct linkwise_error err;

    if (linkwise_cluster_read ("4x8 h100-sxm5-80g intra:370 inter:48", &c, nullptr, &err))
        return 1;
    cluster own_c (c);
    if (linkwise_model_read ("llama-2-13b", &m, nullptr, &err))
        return 1;
    model own_m (m);
    if (linkwise_search (c, m, nullptr, &job, nullptr, nullptr, &p, nullptr, &err))
        return 1;
    plan own_p (p);
    if (linkwise_plan_estimate (p, nullptr, nullptr, &e, &err))
        return 1;
    std::printf ("%s: %.3f s a step\n", linkwise_model_name (m), e.step_s);
    return 0;
}
