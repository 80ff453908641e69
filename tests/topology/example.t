#!/bin/bash
# The bundled cluster is what its script makes of the published figures, where they are at
# hand beside the checkout.
. tests/lib/tap.sh
figures=../shared/data/links
[ -d $figures/nccl-pairwise ] || skip_all "the published figures are not beside this checkout"
examples/clusters/make-h100-17.sh $figures >"$T/h100-17.json"
diff examples/clusters/h100-17.json "$T/h100-17.json" >"$T/diff"
result $? "h100-17.json is what make-h100-17.sh writes" "$T/diff"
[ "$(grep -v '"source"' examples/clusters/h100-17.json | grep -o 'null' | wc -l)" = 27 ] # 17 on the diagonal, 5 pairs twice
result $? "five pairs failed"
done_testing
