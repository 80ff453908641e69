#!/bin/bash
# linkwise topo on a machine with GPUs, played by an hwloc description and a library that
# answers as the NVIDIA driver's does.
. tests/lib/tap.sh
L="spawn $LINKWISE"
# The libraries that hwloc looks through keep what they allocated.
export ASAN_OPTIONS=detect_leaks=0
cat >"$T/machine.xml" <<'X'
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
<object type="Machine" os_index="0" cpuset="0x000000ff" complete_cpuset="0x000000ff" allowed_cpuset="0x000000ff" nodeset="0x00000003" complete_nodeset="0x00000003" allowed_nodeset="0x00000003" gp_index="1">
 <object type="Package" os_index="0" cpuset="0x0000000f" complete_cpuset="0x0000000f" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="2">
  <object type="NUMANode" os_index="0" cpuset="0x0000000f" complete_cpuset="0x0000000f" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="3" local_memory="1073741824"/>
  <object type="PU" os_index="0" cpuset="0x00000001" complete_cpuset="0x00000001" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="4"/>
  <object type="PU" os_index="1" cpuset="0x0000000e" complete_cpuset="0x0000000e" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="5"/>
  <object type="Bridge" gp_index="6" bridge_type="0-1" depth="0" bridge_pci="0000:[00-07]">
   <object type="PCIDev" gp_index="7" pci_busid="0000:07:00.0" pci_type="0302 [10de:20b2] [10de:1463] a1" pci_link_speed="31.5"/>
   <object type="PCIDev" gp_index="8" pci_busid="0000:06:00.0" pci_type="0302 [10de:20b2] [10de:1463] a1" pci_link_speed="31.5"/>
  </object>
 </object>
 <object type="Package" os_index="1" cpuset="0x000000f0" complete_cpuset="0x000000f0" nodeset="0x00000002" complete_nodeset="0x00000002" gp_index="12">
  <object type="NUMANode" os_index="1" cpuset="0x000000f0" complete_cpuset="0x000000f0" nodeset="0x00000002" complete_nodeset="0x00000002" gp_index="13" local_memory="1073741824"/>
  <object type="PU" os_index="4" cpuset="0x000000f0" complete_cpuset="0x000000f0" nodeset="0x00000002" complete_nodeset="0x00000002" gp_index="14"/>
  <object type="Bridge" gp_index="16" bridge_type="0-1" depth="0" bridge_pci="0000:[80-87]">
   <object type="PCIDev" gp_index="17" pci_busid="0000:87:00.0" pci_type="0302 [10de:20b2] [10de:1463] a1" pci_link_speed="31.5"/>
  </object>
 </object>
</object>
</topology>
X
# GPUs at 06 and 07 with four NVLinks between them, one to a switch each, and a GPU that the
# PCI bus does not have.
cat >"$T/nvml.c" <<'X'
#include <stdio.h>
#include <string.h>
struct pci { char old[16]; unsigned domain, bus, device, id, sub; char bus_id[32]; };
static const char *const address[] = {"00000000:06:00.0", "00000000:07:00.0", "00000000:99:00.0"};
#define INDEX(D) ((int) ((char *) (D) - (char *) address))
int nvmlInit_v2 (void) { return 0; }
int nvmlShutdown (void) { return 0; }
int nvmlDeviceGetCount_v2 (unsigned *n) { *n = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2 (unsigned i, void **d) { *d = (char *) address + i; return 0; }
int nvmlDeviceGetPciInfo_v3 (void *d, struct pci *p) { strcpy (p->bus_id, address[INDEX (d)]); return 0; }
int nvmlDeviceGetName (void *d, char *s, unsigned n) { (void) d; snprintf (s, n, "NVIDIA A100-SXM4-80GB"); return 0; }
int nvmlDeviceGetUUID (void *d, char *s, unsigned n) { snprintf (s, n, "GPU-%d", INDEX (d)); return 0; }
int nvmlDeviceGetNvLinkState (void *d, unsigned k, int *up) { (void) d; *up = k < 5; return 0; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2 (void *d, unsigned k, struct pci *p) {
    strcpy (p->bus_id, k == 4 ? "00000000:c0:00.0" : address[!INDEX (d)]); return 0; }
int nvmlDeviceGetNvLinkRemoteDeviceType (void *d, unsigned k, int *t) { (void) d; *t = k == 4 ? 2 : 0; return 0; }
X
value() { tr -d '\n' <"$1" | grep -Eo "\"$2\": *(\"[^\"]*\"|\[[^]]*\]|[^,}]*)" | tr -s ' ' | head -1; }
is() { # NAME KEY VALUE
    found=$(value "$T/node.json" "$2")
    echo "$2 is $found" >"$T/why"
    [ "$found" = "\"$2\": $3" ]
    result $? "$1" "$T/why"
}
export HWLOC_XMLFILE=$T/machine.xml
expect 0 "without the driver's library" "libnvidia-ml.so.1 is missing" $L topo -o "$T/node.json"
is "GPUs in PCI order" gpu_pci '["0000:06:00.0", "0000:07:00.0", "0000:87:00.0"]'
is "their NUMA nodes" gpu_numa '[0, 0, 1]'
is "their cores" gpu_cpus '["0-3", "0-3", "4-7"]'
is "their type by PCI numbers" gpu_type '"a100-sxm4-80g"'
grep -q '"PHB"' "$T/node.json" && grep -q '"SYS"' "$T/node.json"
result $? "how they reach each other"

if ! ${CC:-cc} -shared -fPIC -o "$T/libnvidia-ml.so.1" "$T/nvml.c" 2>"$T/why"; then
    skip "the driver's library" "no compiler: $(head -1 "$T/why")"
    done_testing
fi
export LD_LIBRARY_PATH=$T
expect 0 "with it" "driver's GPU at 0000:99:00.0 is not a PCI device that hwloc sees" $L topo -o "$T/node.json"
grep -q '"NV5"' "$T/node.json"
result $? "NVLinks to each other and through the switch"
is "the model's name" gpu_model '"NVIDIA A100-SXM4-80GB"'
awk -F'[:,]' -v pages="$(getconf _PHYS_PAGES)" -v page="$(getconf PAGESIZE)" \
    '/"host_memory_gib"/ { gib = $2 } END { exit gib < .99 * pages * page / 2 ^ 30 }' "$T/node.json"
result $? "the whole memory, also where NUMA nodes have less" "$T/node.json"
tr -d ' \n' <"$T/node.json" | grep -q '\[\[null,100.0,null\],\[100.0,null,null\],\[null,null,null\]\]'
result $? "five links of 20 GB/s; nobody knows the third GPU's"
$L topo -o "$T/no/where.json" 2>"$T/err"
[ $? = 1 ] && [ ! -e "$T/no" ]
result $? "a folder that is not there"
done_testing
