#!/bin/bash
# docs/tutorial.md is true: its commands run in the order of the page, on four hosts made of
# network namespaces, and print what stands below them.  A ```sh block is run; the block after it
# is its output: of ```figures the words are compared alone, of ```example nothing.  WRITE=1 writes
# what came out into the page.
. tests/lib/tap.sh
. tests/lib/placed.sh
needs_hosts
needs openmpi-bin mpirun.openmpi
no_driver
page=$PWD/docs/tutorial.md
mkdir "$T/bin"
ln -s "$(command -v mpirun.openmpi)" "$T/bin/mpirun"
ln -s "$LINKWISE" "$T/bin/linkwise"
ln -s "$BWPROBE" "$T/bin/bwprobe"

# Two packages with two GPUs each (10de:2684, RTX 4090), as hwloc describes a machine.
package() {
    local set="cpuset=\"0x$2\" complete_cpuset=\"0x$2\" nodeset=\"0x$2\" complete_nodeset=\"0x$2\""
    cat <<X
<object type="Package" os_index="$1" $set gp_index="${1}2">
<object type="NUMANode" os_index="$1" $set gp_index="${1}3" local_memory="1073741824"/>
<object type="PU" os_index="$1" $set gp_index="${1}4"/>
<object type="Bridge" gp_index="${1}5" bridge_type="0-1" depth="0" bridge_pci="0000:[${1}0-${1}7]">
<object type="PCIDev" gp_index="${1}6" pci_busid="0000:${1}6:00.0" pci_type="0302 [10de:2684] [10de:0000] a1"/>
<object type="PCIDev" gp_index="${1}7" pci_busid="0000:${1}7:00.0" pci_type="0302 [10de:2684] [10de:0000] a1"/>
</object></object>
X
}
{
    echo '<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0">'
    echo '<object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3" nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">'
    package 0 1
    package 1 2
    echo '</object></topology>'
} >"$T/machine.xml"

# The page as a script: before block n its output goes to out.n.
awk -v out="$T/out." '
    /^```/ && on { on = 0; next }
    /^```sh$/ { on = 1; n++; print "exec >" out n; next }
    on' "$page" >"$T/page.sh"
echo "echo all >$T/ran" >>"$T/page.sh"
cat >"$T/inside.sh" <<'S'
. tests/lib/hosts.sh
hosts_up h1 h2 h3 h4
for i in 1 2 3 4; do
    links=()
    for j in 1 2 3 4; do
        [ $i = $j ] || links+=(h$j $((i + j == 3 ? 300 : 1000)))
    done
    hosts_shape h$i "${links[@]}"
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=$HOSTS_RSH
export OMPI_MCA_btl_tcp_if_include=10.77.0.0/24 OMPI_MCA_oob_tcp_if_include=10.77.0.0/24
unset HWLOC_PLUGINS_PATH # Open MPI reads a described machine by libxml's
export HWLOC_PLUGINS_BLACKLIST=hwloc_gl.so,hwloc_opencl.so,hwloc_pci.so
export HWLOC_XMLFILE=$1/machine.xml PATH=$1/bin:$1/no-driver/bin:$PATH ASAN_OPTIONS=detect_leaks=0
cd "$1/lab"
# Other tests run beside this one: what waits for a processor loses what its link gives.
exec nice -n -18 bash -e -o pipefail "$1/page.sh"
S
run_page() { # in a new lab; page.md is the page with what came out
    rm -rf "$T/lab" "$T/ran" "$T"/out.*
    mkdir "$T/lab"
    SANDBOX_LIMIT=120 in_sandbox "$T/inside.sh" "$T" >"$T/sandbox.out" 2>&1
    awk -v out="$T/out." '
        !/^```/ { if (in_block != "out") print; next }
        in_block == "out" { while ((getline line <(out n)) > 0) print line }
        { print; in_block = in_block ? "" : $0 == "```sh" ? "sh" : "out"; n += in_block == "sh" }
        ' "$page" >"$T/page.md"
}
words() { # Heat maps, places and layers are figures, too; some lines are there when links were disturbed.
    awk '/^```/ { kind = $0 }
        kind == "```figures" && /^(link|risky|ties) / { next }
        kind == "```figures" && /^--pipeline-model-parallel-layout/ { $2 = "layers" }
        kind == "```figures" { gsub(/[-+.#0-9]+/, "#"); gsub(/ +/, " ") }
        /^h# #[A-Z] / { gsub(/#[A-Z]/, "#") }
        kind != "```example" || /^```/' "$1"
}
as_shown() {
    diff <(words "$page") <(words "$T/page.md") >"$T/diff"
}
apart() {
    awk '$2 != last { printf "%s ", last = $2 } END { print "" }' "$T/lab/job/map.txt" >"$T/order"
    [ "$(wc -w <"$T/order")" = 4 ] && ! grep -Eq 'h1 h2|h2 h1' "$T/order"
}

# What else runs on this machine takes from what the links give: such a lab is measured anew.
for try in 1 2 3; do
    run_page
    as_shown && apart && break
    echo "# measured $try times"
done
[ -z "${WRITE:-}" ] || cp "$T/page.md" "$page"
[ -e "$T/ran" ] && [ "$(cat "$T"/out.* | wc -l)" -gt 80 ]
result $? "all commands of the page end well" "$T/sandbox.out"
as_shown
result $? "they print what the page shows" "$T/diff"
apart
result $? "the plan keeps the hosts of the slow link apart" "$T/order"
awk '{ split($10, gpu, ","); sub(",", "", $6); print $2, $6, gpu[$8 + 1] }' "$T/lab/job.out" |
    diff - "$T/lab/job/map.txt" >"$T/diff"
result $? "the ranks run where it says" "$T/diff"
done_testing
