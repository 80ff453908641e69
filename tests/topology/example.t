#!/bin/bash
# The bundled clusters are what their scripts make of the published figures, where they are
# at hand beside the checkout.
. tests/lib/tap.sh
figures=../shared/data/links
[ -d $figures/nccl-pairwise ] || skip_all "the published figures are not beside this checkout"
examples/clusters/make-h100-17.sh $figures >"$T/h100-17.json"
diff examples/clusters/h100-17.json "$T/h100-17.json" >"$T/diff"
result $? "h100-17.json is what make-h100-17.sh writes" "$T/diff"
[ "$(grep -oE "(\[|, )null" examples/clusters/h100-17.json | wc -l)" = 54 ] # in each of two matrices 17 on the diagonal, 5 pairs twice
result $? "five pairs failed"
examples/clusters/make-others.sh $figures "$T"
for f in h100-10 a100-16-before a100-16-after; do
    diff "examples/clusters/$f.json" "$T/$f.json" >"$T/diff"
    result $? "$f.json is what make-others.sh writes" "$T/diff"
done
done_testing
