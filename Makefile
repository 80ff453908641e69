# linkwise: the only makefile.  `make run` builds and shows the main job, `make check` runs
# the tests, `make info` says what was found, `make help` lists the rest.

# ---- settings ----

-include config.mk

CC ?= cc
ifeq ($(origin CC),default)
CC := $(shell command -v gcc >/dev/null 2>&1 && echo gcc || echo cc)
endif
CFLAGS ?= -O2 -g
prefix ?= /usr/local
includedir ?= $(prefix)/include
libdir ?= $(prefix)/lib
bindir ?= $(prefix)/bin
datadir ?= $(prefix)/share
docdir ?= $(datadir)/doc/linkwise
pythondir ?= $(prefix)/lib/python3/dist-packages
man1dir ?= $(datadir)/man/man1
man5dir ?= $(datadir)/man/man5
bashdir ?= $(datadir)/bash-completion/completions
zshdir ?= $(datadir)/zsh/site-functions
fishdir ?= $(datadir)/fish/vendor_completions.d
DESTDIR ?=
CUDA_HOME ?= $(patsubst %/bin/nvcc,%,$(firstword $(shell command -v nvcc 2>/dev/null) /usr/local/cuda/bin/nvcc))
# Compilers at once, and of test files two more; -jN on the command line goes before it.
JOBS ?= $(or $(shell nproc 2>/dev/null),2)
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(JOBS)
endif
# Of make's own rules none is used, and to go through them takes longer than all else.
MAKEFLAGS += -r
VERSION := $(shell sed -n 's/.*LINKWISE_VERSION "\(.*\)".*/\1/p' base/version.h)

# The Debian and Ubuntu packages.  Without those of NEEDS, each behind one of its headers, nothing
# builds; a test that needs one of the others skips and names it.  `make check` installs the small
# ones, each behind one of its commands, and goes on where it may not.
NEEDS := stdio.h:libc6-dev glpk.h:libglpk-dev jansson.h:libjansson-dev hwloc.h:libhwloc-dev expat.h:libexpat1-dev \
         sha2.h:libmd-dev csv.h:libcsv-dev nlopt.h:libnlopt-dev yaml.h:libyaml-dev
DEPS := gcc make pkg-config $(foreach n,$(NEEDS),$(lastword $(subst :, ,$n))) libcmocka-dev perl
CHECK_NEEDS := prove:perl python3:python3 ip:iproute2 hostname:hostname
CHECK_DEPS := $(foreach n,$(CHECK_NEEDS),$(lastword $(subst :, ,$n))) python3-jsonschema
TEST_DEPS := clang openmpi-bin mpich slurmctld slurmd slurm-client python3-torch numactl \
             $(CHECK_DEPS)

ifeq ($(SAN),1)
B := build/san
SAN_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
else
B := build
endif

# ---- detection ----

hash := \#
comma := ,

headers = $(shell printf '$(foreach h,$(1),$(hash)include <$(h)>\n)' | $(CC) $(2) -E - >/dev/null 2>&1 && echo yes)
found = $(call headers,sys/types.h $(foreach n,$(1),$(firstword $(subst :, ,$n))))
missing = $(if $(call found,$(1)),,$(foreach n,$(1),$(if $(call found,$n),,$(lastword $(subst :, ,$n)))))
CMOCKA := stdarg.h stddef.h stdint.h setjmp.h cmocka.h
# One look for all, as each takes as long as all of the rest; what is missing takes more of them.
ALL_FOUND := $(call headers,sys/types.h $(foreach n,$(NEEDS),$(firstword $(subst :, ,$n))) $(CMOCKA))
MISSING := $(strip $(if $(ALL_FOUND),,$(if $(shell command -v $(firstword $(CC))),$(call missing,$(NEEDS)),$(filter-out make perl libcmocka-dev,$(DEPS)))))
NO_CMOCKA := $(if $(or $(ALL_FOUND),$(call headers,$(CMOCKA))),,libcmocka-dev)
ABSENT := $(shell for c in $(foreach n,$(CHECK_NEEDS),$(firstword $(subst :, ,$n))); do command -v $$c >/dev/null || echo $$c:%; done)
CHECK_MISSING := $(strip $(NO_CMOCKA) $(foreach n,$(filter $(or $(ABSENT),:),$(CHECK_NEEDS)),$(lastword $(subst :, ,$n))))
TEST_MISSING := $(strip $(MISSING) $(NO_CMOCKA))
# What building alone asks is asked once, where a rule first needs it: most runs of make build nothing.
once = $(eval $1 := $$($2))$($1)
openmp = $(shell printf '$(hash)include <omp.h>\nint main (void) { return omp_get_max_threads () < 1; }\n' | $(CC) -fopenmp -x c - -o /dev/null 2>/dev/null && echo yes)
HAVE_OPENMP = $(call once,HAVE_OPENMP,openmp)
cuda = $(call headers,cuda_runtime_api.h,-I$(CUDA_HOME)/include)
HAVE_CUDA = $(call once,HAVE_CUDA,cuda)
pkg = $(shell pkg-config $(1) $(2) 2>/dev/null)

OPENMP = $(if $(HAVE_OPENMP),-fopenmp,-Wno-unknown-pragmas)
WARN := -Wall -Wextra -Wshadow -Wmissing-prototypes
OUR_CFLAGS = -std=c11 -D_GNU_SOURCE -I. -fPIC $(WARN) $(OPENMP) $(SAN_FLAGS) $(PKG_CFLAGS)
pkg_cflags = $(call pkg,--cflags,jansson libmd hwloc expat)
PKG_CFLAGS = $(call once,PKG_CFLAGS,pkg_cflags)
# All at once, or where one of them is not known each by itself: package, and its usual option.
pkgs = $(or $(call pkg,--libs,$(filter-out -l%,$1)),$(foreach x,$(join $(filter-out -l%,$1),$(filter -l%,$1)), \
         $(or $(call pkg,--libs,$(firstword $(subst -l, ,$x))),-l$(lastword $(subst -l, ,$x)))))
probe_libs = $(call pkgs,jansson hwloc expat libmd -ljansson -lhwloc -lexpat -lmd) -lm -ldl -lpthread
PROBE_LIBS = $(call once,PROBE_LIBS,probe_libs)
libs = -lglpk -lcsv $(call pkgs,jansson hwloc expat libmd nlopt yaml-0.1 -ljansson -lhwloc -lexpat -lmd -lnlopt -lyaml) -lm
LIBS = $(call once,LIBS,libs)
OUR_LDFLAGS = $(OPENMP) $(SAN_FLAGS)
# linkwise holds the libraries whose archives are all there: it starts in less time, and runs where
# these are not installed.  With STATIC= it looks for them when it starts, as packages want it.
STATIC ?= $(if $(SAN),,yes)
ARCHIVES := -lglpk -lcolamd -lamd -lsuitesparseconfig -lz -lltdl -lgmp -lcsv -ljansson -lexpat -lmd -lyaml
archives = $(if $(STATIC),$(shell echo 'int main (void) { return 0; }' | $(CC) $(OUR_LDFLAGS) $(LDFLAGS) -x c - -o /dev/null \
            -Wl,-Bstatic,--whole-archive $(ARCHIVES) -Wl,--no-whole-archive,-Bdynamic -lm -ldl 2>/dev/null && echo yes))
program_libs = $(if $(archives),-Wl$(comma)-Bstatic $(ARCHIVES) -Wl$(comma)-Bdynamic$(comma)--as-needed) $(LIBS)
PROGRAM_LIBS = $(call once,PROGRAM_LIBS,program_libs)

ifneq ($(V),1)
Q := @
say = @printf '  %-5s %s\n' $(1) $(2);
endif

# ---- sources ----

MAPPER := pool bound place search replan
ROOMS := base workload workload/schedule topology topology/machine topology/measured topology/edit topology/survey topology/export \
         memest costmodel calibrate jobs mapper $(MAPPER:%=mapper/%) check launch report api
LIB_SRC := $(sort $(wildcard $(ROOMS:%=%/*.c)))
CLI_SRC := $(sort $(wildcard cli/*.c))
PROBE_SRC := $(sort $(wildcard bwprobe/*.c))
PAGES := README.md NEWS LICENSE LICENSES/GPL-3.0-or-later.txt CONTRIBUTING.md CITATION.cff \
         linkwise.h examples/README.md tests/install/plan_job.c \
         $(wildcard docs/*.md docs/notes/*.md docs/pictures/*.svg) bench/RESULTS.md
PYTHON := $(sort $(wildcard python/linkwise/*.py)) python/linkwise/py.typed
SCHEMAS := $(wildcard docs/schema/*.json)
PROFILES := $(sort $(wildcard workload/profiles/*.json))
SCRIPTS := $(sort $(wildcard launch/scripts/*))
REPORT := $(sort $(wildcard report/page/*))
BENCH := $(patsubst %.c,$B/%,$(filter-out bench/joint.c,$(wildcard bench/*.c)))
# The tests that T names, files or folders; without it all that need no GPU.
T =
named = $(filter-out tests/lib/% tests/install/%.c,$(filter %.c %.t,$(wildcard $(foreach n,$(patsubst tests/%,%,$(patsubst $B/%,%,$(1:%/=%))),$(addprefix tests/$n,.c .t /*.c /*.t) tests/$n))))
CHOSEN := $(sort $(if $(T),$(foreach t,$(T),$(or $(call named,$t),$(if $(filter mutants fuzz,$(MAKECMDGOALS)),,$(error T=$t names no test below tests/)))), \
          $(filter-out tests/lib/% tests/gpu/% tests/install/%.c,$(wildcard tests/*/*.c tests/*/*.t))))
TEST_SH := $(filter %.t,$(CHOSEN))
TESTS := $(patsubst %.c,$B/%,$(filter %.c,$(CHOSEN)))

# The number changes when a program that was built before would no longer run.
SONAME := liblinkwise.so.0
LIB_OBJ := $(LIB_SRC:%.c=$B/obj/%.o) $B/obj/gen/profiles.o $B/obj/gen/scripts.o $B/obj/gen/page.o $B/obj/gen/record.o
CLI_OBJ := $(CLI_SRC:%.c=$B/obj/%.o)
PROBE_OBJ := $(PROBE_SRC:%.c=$B/obj/%.o) $B/obj/gen/attention.o
# What bwprobe takes of the library: base and the core of topology.
PROBE_LIB_SRC := $(wildcard base/*.c topology/*.c)
PROBE_LIB_OBJ := $(filter $(PROBE_LIB_SRC:%.c=$B/obj/%.o),$(LIB_OBJ))

# ---- targets ----

.PHONY: all run pictures check check-long check-faults check-gpu fuzz bench bench-plans bench-monotone fit record accuracy accuracy-memory accuracy-times \
        accuracy-sources accuracy-links results wheel mutants deps deps-test info help install uninstall dist deb clean config missing \
        packages-then-run packages-then-check
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
# Some goals change what others find: those go one after the other.
ifneq ($(and $(word 2,$(MAKECMDGOALS)),$(filter clean config deps deps-test,$(MAKECMDGOALS))$(TEST_MISSING)),)
.NOTPARALLEL:
endif

all: $B/linkwise $B/bwprobe $B/liblinkwise.a $B/liblinkwise.so $B/pages/table

help:
	@sed -n 's/^## //p' Makefile

## make            build linkwise and bwprobe, on all cores
## make run        build, then plan the bundled example and write its launcher files
## make pictures   the pictures in docs/pictures anew, of the same example
## make check      build and run the tests
## make check T="mapper/bounds cli"   these tests alone, files or folders of tests/
##                 or by hand: bash tests/cli/main_job.t, build/tests/mapper/bounds
## make check-long   the tests that take longer
## make check-faults FAULTS=100   that many lost allocations, kills and full disks a command; 0: all
## make fuzz SECONDS=60 T=from    changed inputs for every reader, or for these (docs/reliability.md)
## make check-gpu    the tests that need a GPU (docs/gpu-check.md)
## make bench      measure speed
## make bench-monotone   is more hardware ever a slower plan? (docs/search.md)
## make mutants    N=20 SEED=1 T="memest mapper/bound": do tests notice one changed operator?
## make accuracy RUNS=DIR   estimates beside measured runs
## make fit RUNS=DIR        constants fitted to all of these runs together
## make record RUNS=DIR     calibrate/record.json: their accuracy by framework and GPU type
## make results RUNS=DIR    bench and accuracy, written to bench/RESULTS.md
## make info       what was found on this machine
## make deps       install the build packages (apt); deps-test: those of optional tests
## make install    prefix=/usr/local DESTDIR=; make uninstall takes the same files away
## make wheel      build/wheel/linkwise-*.whl: the Python package with the library in it
## make dist       build/linkwise-VERSION.tar.xz, of the last commit
## make deb        Debian packages of it, in build/deb (docs/install.md)
## make config CC=clang CFLAGS=-O3   remember choices in config.mk
## make clean      remove build/
## With any of them: JOBS=N or -jN, how much at once (as many as cores); V=1 shows commands;
## SAN=1 is AddressSanitizer and UBSan, in build/san; LINKWISE_SEED=N draws other random tests

# A package that is missing is installed first; then make starts anew, since what it found
# has changed.  Tests do without where it cannot be.
run: $(if $(MISSING),packages-then-run,run-example)
check: $(if $(MISSING)$(if $(DEPS_TRIED),,$(CHECK_MISSING)),packages-then-check,run-tests)
packages-then-run packages-then-check: packages-then-%:
	$(if $(DEPS_TRIED),$(error build packages are still missing after installing: $(TEST_MISSING)))
	@sh tests/lib/install-packages.sh --ask $(DEPS) $(if $(filter check,$*),$(filter-out $(DEPS),$(CHECK_DEPS))) \
	    $(if $(MISSING),,|| echo 'tests that need them are left out')
	@$(MAKE) --no-print-directory DEPS_TRIED=1 $*

missing:
	@echo 'missing build packages: $(TEST_MISSING); `make deps` installs them' >&2; exit 1

deps:
	@sh tests/lib/install-packages.sh $(DEPS)

deps-test:
	@sh tests/lib/install-packages.sh $(TEST_DEPS)

.PHONY: run-example run-tests
RUN := build/run
EXAMPLE := examples/clusters/h100-17.json
EXAMPLE_JOB := examples/models/llama-2-13b.json
EXAMPLE_BATCH := --seq 4096 --global-batch 1024
run-example: all
	@mkdir -p $(RUN)
	$B/linkwise plan $(EXAMPLE) $(EXAMPLE_JOB) \
	    $(EXAMPLE_BATCH) -o $(RUN)/plan.json
	@echo
	$B/linkwise check $(RUN)/plan.json
	@echo
	$B/linkwise emit $(RUN)/plan.json --to all -d $(RUN)/launch

PICTURES := docs/pictures
pictures: $B/linkwise
	@mkdir -p $(PICTURES)
	$Q$B/linkwise cluster export --to svg $(EXAMPLE) -o $(PICTURES)/cluster.svg
	$Q$B/linkwise plan $(EXAMPLE) $(EXAMPLE_JOB) $(EXAMPLE_BATCH) --json | \
	    $B/linkwise report --svg - -o $(PICTURES)/placement.svg

TEST_ENV = TMPDIR="$$(sh tests/lib/tmpdir.sh)" OMP_WAIT_POLICY=passive LINKWISE=$(CURDIR)/$B/linkwise BWPROBE=$(CURDIR)/$B/bwprobe CUDA_HOME='$(CUDA_HOME)' \
    CMOCKA_MESSAGE_OUTPUT=TAP CC='$(CC)' \
    LSAN_OPTIONS=suppressions=$(CURDIR)/tests/lib/lsan.supp:print_suppressions=0
PROVE = prove --timer --exec ''
# What takes longest starts first.  Launchers and probers wait much: three tests more than there are
# cores are at work, and what computes stands between what waits, so that cores are never idle.
FIRST := $(patsubst %,tests/%.t,bwprobe/hosts launch/torch launch/batch bwprobe/rogue bwprobe/nccl cli/main_job cli/tutorial bwprobe/launchers \
         launch/slurm_preflight tree/shape launch/slurm_unlike report/explain launch/slurm_bind launch/wrapper launch/examples faults/memory \
         bwprobe/faults faults/files bwprobe/trunk install/install launch/emit cli/running bwprobe/preflight jobs/import launch/slurm report/browser \
         launch/slurm_het python/torch launch/env calibrate/record launch/kubernetes cli/interrupt launch/openmpi calibrate/targets \
         cli/answer cli/cluster launch/kubernetes_init)
# Without cmocka the shell tests alone; without prove one after the other.
RUN_TESTS = $(call between,$(foreach t,$(FIRST),$(filter $t,$(TEST_SH))) $(filter-out $(FIRST),$(TEST_SH)),$(if $(NO_CMOCKA),,$(TESTS)))
between = $(firstword $1) $(wordlist 1,3,$2) $(if $(word 2,$1),$(call between,$(wordlist 2,999,$1),$(wordlist 4,999,$2)),$(wordlist 4,999,$2))
PLAIN = failed=; for t in $(RUN_TESTS); do echo "$$t"; $(TEST_ENV) $$t || failed="$$failed $$t"; done; \
    [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }
AT_ONCE = --jobs $(shell expr $(or $(patsubst -j%,%,$(filter -j%,$(MAKEFLAGS))),$(JOBS)) + 3)
PRELOADED := $(addprefix $B/tests/lib/,spawn.so faults.so)
run-tests: $(if $(TEST_SH),all $(PRELOADED)) $(if $(NO_CMOCKA),,$(TESTS))
	@$(if $(filter perl,$(CHECK_MISSING)),$(PLAIN),$(TEST_ENV) $(PROVE) $(if $(word 2,$(CHOSEN)),$(AT_ONCE),--verbose) $(strip $(RUN_TESTS)))

check-long: all $(PRELOADED) $(TESTS)
	@LINKWISE_LONG=1 $(TEST_ENV) $(PROVE) $(TESTS) $(TEST_SH)

# libFuzzer's build of everything is apart, in build/fuzz; fuzz.sh says what is missing.
SECONDS ?= 60
FUZZ_FLAGS := T= B=build/fuzz CC=clang OPENMP=-Wno-unknown-pragmas CFLAGS='-O1 -g -DFUZZ' LDFLAGS=-fsanitize=fuzzer \
    SAN_FLAGS='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer'
fuzz: all
	@sh tests/fuzz/fuzz.sh --needs
	@$(MAKE) --no-print-directory $(FUZZ_FLAGS) build/fuzz/tests/fuzz/readers
	@LINKWISE=$(CURDIR)/$B/linkwise FUZZ_JOBS=$(JOBS) sh tests/fuzz/fuzz.sh $(SECONDS) $(T)

# All of what may go wrong in a call: FAULTS=0.
FAULTS ?= 100
check-faults: all $(PRELOADED)
	@rm -f $B/faults.txt; FAULTS=$(FAULTS) FAULTS_TABLE=$(CURDIR)/$B/faults.txt $(TEST_ENV) \
	    $(PROVE) $(wildcard tests/faults/*.t) tests/bwprobe/faults.t tests/bwprobe/rogue.t; rc=$$?; \
	printf '%-22s %-7s %9s %8s %8s %8s %6s\n' command fault calls injected ended same wrong; cat $B/faults.txt; exit $$rc

check-gpu: all
	@$(TEST_ENV) $(PROVE) --verbose $(sort $(wildcard tests/gpu/*.t))

RUNS ?= runs
accuracy: $(BENCH)
	@for b in accuracy accuracy_times accuracy_sources accuracy_links; do $B/bench/$$b $(RUNS) || exit; done
fit: $B/bench/fit
	@$< $(RUNS)
accuracy-memory: $B/bench/accuracy
accuracy-times accuracy-sources accuracy-links: accuracy-%: $B/bench/accuracy_%
accuracy-memory accuracy-times accuracy-sources accuracy-links:
	@$< $(RUNS)

# What `parts` of outputs and reports say of runs on record; the build links it in.
record: $B/bench/record
	@$< $(RUNS) >$B/record.json && mv $B/record.json calibrate/record.json

# One change of the sources after another: do their tests notice?
N ?= 20
SEED ?= 1
mutants:
	@CC='$(CC)' OUR_CFLAGS='$(OUR_CFLAGS)' LIBS='$(OUR_LDFLAGS) $(LDFLAGS) $(LIBS)' LDFLAGS='$(LDFLAGS)' SLOW='$(SLOW)' \
	    perl bench/mutants.pl $(N) $(SEED) $(T)

bench: bench-plans $(BENCH)
	@for b in speed annealer planted cluster probe history; do $B/bench/$$b || exit; done
bench-plans: $B/linkwise $(BENCH)
	@$B/bench/plans $B/linkwise

# Is more hardware ever a slower plan?  30 drawn problems; 200 where LINKWISE_LONG is set.
bench-monotone: $B/bench/monotone
	@$<

# PARTS="accuracy plans" measures these alone.
results: $B/linkwise $(addprefix $B/bench/,accuracy accuracy_times accuracy_sources accuracy_links speed annealer planted cluster \
         probe history plans)
	@BUILD='$B' RUNS='$(RUNS)' PARTS='$(PARTS)' CC='$(CC)' CFLAGS='$(CFLAGS)' sh bench/results.sh

info:
	@printf '%-10s %s\n' version '$(VERSION)' \
	    compiler "$$($(CC) --version 2>/dev/null | head -n 1)" \
	    packages '$(if $(TEST_MISSING),missing: $(TEST_MISSING),all build packages found)$(if $(CHECK_MISSING),; tests lack $(CHECK_MISSING))' \
	    OpenMP '$(if $(HAVE_OPENMP),yes,no: the search uses one thread)' \
	    mpirun "$$(mpirun --version 2>/dev/null | head -n 1 | grep . || echo 'no: its launcher test skips')" \
	    CUDA '$(if $(HAVE_CUDA),headers in $(CUDA_HOME)/include: a test compares them,no headers: none are needed)' \
	    clang "$$(clang --version 2>/dev/null | head -n 1 | grep . || echo 'no: its warnings test skips')"

wheel: $B/$(SONAME)
	$Qmkdir -p $B/wheel && strip -o $B/wheel/$(SONAME) $<
	$Qpython3 python/wheel.py '$(VERSION)' $B/wheel/$(SONAME) $B/wheel

config:
	@printf '%s\n' $(foreach v,CC CFLAGS LDFLAGS STATIC prefix CUDA_HOME JOBS,$(if $(filter command%,$(origin $v)),'$v := $($v)')) >config.mk
	@cat config.mk

# What packaging/pages.sh makes, by kind; each goes to its own folder, ...dir.
MADE := man1 man5 bash zsh fish

# DESTDIR may have blanks.  What uninstall takes away is this list.
install: all $B/obj/install/liblinkwise.a
	install -d "$(DESTDIR)$(bindir)" "$(DESTDIR)$(libdir)/pkgconfig" "$(DESTDIR)$(includedir)" \
	    "$(DESTDIR)$(datadir)/linkwise/schema"
	install -m 755 $B/linkwise $B/bwprobe "$(DESTDIR)$(bindir)/"
	install -m 644 linkwise.h "$(DESTDIR)$(includedir)/"
	install -m 644 $B/obj/install/liblinkwise.a "$(DESTDIR)$(libdir)/"
	install -m 755 $B/$(SONAME) "$(DESTDIR)$(libdir)/"
	ln -sf $(SONAME) "$(DESTDIR)$(libdir)/liblinkwise.so"
	@$(write_pc) >"$(DESTDIR)$(libdir)/pkgconfig/linkwise.pc"
	install -m 644 $(SCHEMAS) "$(DESTDIR)$(datadir)/linkwise/schema/"
	install -d "$(DESTDIR)$(pythondir)/linkwise"
	install -m 644 $(PYTHON) "$(DESTDIR)$(pythondir)/linkwise/"
	$(foreach d,$(sort $(dir $(PAGES))),install -D -m 644 -t "$(DESTDIR)$(docdir)/$d" $(foreach f,$(PAGES),$(if $(filter $d,$(dir $f)),$f)) &&) :
	ln -sfnr "$(DESTDIR)$(datadir)/linkwise/schema" "$(DESTDIR)$(docdir)/docs/schema"
	$(foreach k,$(MADE),install -D -m 644 -t "$(DESTDIR)$($(k)dir)" $B/pages/$k/* &&) :

uninstall: $B/pages/table
	rm -f "$(DESTDIR)$(bindir)/linkwise" "$(DESTDIR)$(bindir)/bwprobe" "$(DESTDIR)$(includedir)/linkwise.h" \
	    "$(DESTDIR)$(libdir)/liblinkwise.a" "$(DESTDIR)$(libdir)/liblinkwise.so" "$(DESTDIR)$(libdir)/$(SONAME)" \
	    "$(DESTDIR)$(libdir)/pkgconfig/linkwise.pc"
	cd "$(DESTDIR)$(datadir)/linkwise/schema" 2>/dev/null && rm -f $(notdir $(SCHEMAS)) || :
	cd "$(DESTDIR)$(docdir)" 2>/dev/null && rm -f $(PAGES) || :
	rm -rf "$(DESTDIR)$(pythondir)/linkwise" "$(DESTDIR)$(docdir)/docs/schema"
	$(foreach k,$(MADE),ls $B/pages/$k | (cd "$(DESTDIR)$($(k)dir)" 2>/dev/null && xargs rm -f);) :
	for d in "$(docdir)/docs/notes" "$(docdir)/docs/pictures" "$(docdir)/docs" "$(docdir)/bench" "$(docdir)/LICENSES" "$(docdir)/examples" \
	    "$(docdir)/tests/install" "$(docdir)/tests" "$(docdir)" \
	    "$(datadir)/linkwise/schema" "$(datadir)/linkwise"; do \
	    rmdir "$(DESTDIR)$$d" 2>/dev/null || :; done

# linkwise.pc as this prefix needs it: what a static program links beside the library is in
# Requires.private where pkg-config knows it, else in Libs.private; so is hwloc, since hwloc.pc
# asks for a libudev that hwloc's own package does not bring.
write_pc = known=; rest='-lglpk -lcsv -lhwloc'; for p in jansson expat nlopt libmd yaml-0.1; do \
	  if pkg-config --exists $$p 2>/dev/null; then known="$$known $$p"; else case $$p in yaml*) rest="$$rest -lyaml";; *) rest="$$rest -l$${p\#lib}";; esac; fi; done; \
	printf '%s\n' 'prefix=$(prefix)' 'libdir=$(libdir)' 'includedir=$(includedir)' '' 'Name: linkwise' \
	  'Description: placement of training jobs on measured clusters' 'Version: $(VERSION)' \
	  "Requires.private:$$known" 'Libs: -L$${libdir} -llinkwise' \
	  "Libs.private: $$rest -lm -lpthread $(HAVE_OPENMP:yes=-lgomp)" 'Cflags: -I$${includedir}'

# The tracked tree of HEAD: the same bytes from the same commit.
DIST := linkwise-$(VERSION)
dist:
	@mkdir -p build
	git archive --prefix=$(DIST)/ -o build/$(DIST).tar HEAD
	xz -9 -T1 -f build/$(DIST).tar

# Debian packages of that, into build/deb.  What make knows here is not meant for its make.
deb: dist
	rm -rf build/deb
	mkdir build/deb
	tar -xf build/$(DIST).tar.xz -C build/deb
	cp -r build/deb/$(DIST)/packaging/debian build/deb/$(DIST)/
	cd build/deb/$(DIST) && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS \
	    DEB_BUILD_OPTIONS="$${DEB_BUILD_OPTIONS-nocheck}" dpkg-buildpackage -b -us -uc

clean:
	rm -rf build

# ---- rules ----

# What everything is built with: a change of it builds anew.
SETTINGS := $(MAKEFILE_LIST)

# Nothing is made where a header is missing.
$(if $(MISSING),$(LIB_OBJ) $(CLI_OBJ) $(PROBE_OBJ) $(filter $B/gen/%,$(patsubst $B/obj/%.o,$B/%.c,$(LIB_OBJ) $(PROBE_OBJ)))) $(if $(TEST_MISSING),$(TESTS)): | missing

$B/linkwise: $(CLI_OBJ) $B/liblinkwise.a
	$(call say,LD,$@)
	$Q$(CC) $(OUR_LDFLAGS) $(LDFLAGS) -o $@ $(CLI_OBJ) $B/liblinkwise.a $(PROGRAM_LIBS)

$B/bwprobe: $(PROBE_OBJ) $B/obj/libprobe.a
	$(call say,LD,$@)
	$Q$(CC) $(OUR_LDFLAGS) $(LDFLAGS) -o $@ $^ $(PROBE_LIBS)

$B/obj/libprobe.a: $(PROBE_LIB_OBJ)
	$Qrm -f $@ && ar rcs $@ $^

# The shared library gives what linkwise.h marks; programs must show argp_program_version to libc.
$(LIB_OBJ): OUR_CFLAGS += -fvisibility=hidden

$B/liblinkwise.a: $(LIB_OBJ)
	$(call say,AR,$@)
	$Qrm -f $@ && ar rcs $@ $^

# What is installed is one object in which names other than linkwise_* are its own.
$B/obj/install/liblinkwise.a: $(LIB_OBJ)
	$Qmkdir -p $(@D) && rm -f $@ && ld -r -o $(@D)/linkwise.o $^ && \
	    objcopy --localize-hidden $(@D)/linkwise.o && ar rcs $@ $(@D)/linkwise.o

$B/$(SONAME): $(LIB_OBJ) api/linkwise.map
	$(call say,LD,$@)
	$Q$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=api/linkwise.map $(OUR_LDFLAGS) $(LDFLAGS) \
	    -o $@ $(LIB_OBJ) $(LIBS)

$B/liblinkwise.so: $B/$(SONAME)
	$Qln -sf $(SONAME) $@

# Shipped texts as C strings: $(call texts,HEADER,TABLE,SUFFIX TO DROP,FILES)
texts = mkdir -p $(@D) && { \
	  echo '$(hash)include "$1"'; echo '$(hash)include <stddef.h>'; echo 'const struct text_shipped $2[] = {'; \
	  for f in $4; do \
	    printf '{"%s",\n' "$$(basename $$f $3)"; \
	    sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $$f; echo '},'; \
	  done; \
	  echo '{NULL, NULL}};'; } >$@

$B/gen/profiles.c: $(PROFILES) $(SETTINGS)
	$(call say,GEN,$@)
	$Q$(call texts,workload/workload_private.h,workload_shipped_profiles,.json,$(PROFILES))

$B/gen/scripts.c: $(SCRIPTS) $(SETTINGS)
	$(call say,GEN,$@)
	$Q$(call texts,launch/launch_private.h,launch_shipped_scripts,,$(SCRIPTS))

$B/gen/record.c: calibrate/record.json $(SETTINGS)
	$(call say,GEN,$@)
	$Q$(call texts,calibrate/calibrate_private.h,calibrate_shipped_record,.json,$<)

$B/gen/page.c: $(REPORT) $(SETTINGS)
	$(call say,GEN,$@)
	$Q$(call texts,report/report_private.h,report_shipped_page,,$(REPORT))

$B/gen/attention.c: bwprobe/attention.py $(SETTINGS)
	$(call say,GEN,$@)
	$Q$(call texts,bwprobe/cuda.h,attention_script,,$<)

$B/pages/table: $(wildcard packaging/*.awk) packaging/pages.sh base/version.h $(PAGES) $B/linkwise $B/bwprobe
	$(call say,GEN,$(@D))
	$Q$(if $(SAN_FLAGS),ASAN_OPTIONS=detect_leaks=0) sh packaging/pages.sh $(@D) $B/linkwise $B/bwprobe

# What a compiler says stays beside what it makes, where tests/tree/shape.t looks for warnings.
said = 2>$@.said || { cat $@.said >&2; exit 1; }; cat $@.said >&2

$B/obj/gen/%.o: $B/gen/%.c
	$(call say,CC,$<)
	$Qmkdir -p $(@D) && $(CC) $(OUR_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $< $(said)

$B/obj/%.o: %.c $(SETTINGS)
	$(call say,CC,$<)
	$Qmkdir -p $(@D) && $(CC) $(OUR_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $< $(said)

# Tests of bwprobe see its files, all but the program's own.
$B/tests/bwprobe/%: tests/bwprobe/%.c $(filter-out %/main.o,$(PROBE_OBJ)) $B/obj/libprobe.a
	$(call say,CC,$<)
	$Qmkdir -p $(@D) && $(CC) $(OUR_CFLAGS) $(if $(HAVE_CUDA),-isystem $(CUDA_HOME)/include) \
	    $(CFLAGS) -MMD -MP -o $@ $(filter %.c %.o %.a,$^) \
	    $(OUR_LDFLAGS) $(LDFLAGS) -lcmocka $(PROBE_LIBS) $(said)

# Shell tests load one (tests/lib/tap.sh), and put the other before a command (tests/lib/faults.sh);
# bash and the command have what they lack, and no sanitizer.
$B/tests/lib/%.so: tests/lib/%.c
	$(call say,CC,$<)
	$Qmkdir -p $(@D) && $(CC) -std=c11 -D_GNU_SOURCE $(WARN) $(CFLAGS) -shared -fPIC -o $@ $< -ldl $(said)

# The readers of both programs, and their commands.
$B/tests/fuzz/readers: $(filter-out %/main.o,$(CLI_OBJ) $(PROBE_OBJ))

$B/tests/%: tests/%.c $B/liblinkwise.a
	$(call say,CC,$<)
	$Qmkdir -p $(@D) && $(CC) $(OUR_CFLAGS) $(CFLAGS) -MMD -MP -o $@ $(filter %.c %.o,$^) \
	    $B/liblinkwise.a $(OUR_LDFLAGS) $(LDFLAGS) -lcmocka $(LIBS) $(said)

$B/bench/fit $B/bench/accuracy_sources $B/tests/bench/joint: $B/obj/bench/joint.o
$B/bench/probe: $B/obj/bwprobe/schedule.o $B/obj/bwprobe/models.o

$B/bench/%: bench/%.c $B/liblinkwise.a
	$(call say,CC,$<)
	$Qmkdir -p $(@D) && $(CC) $(OUR_CFLAGS) $(CFLAGS) -MMD -MP -o $@ $(filter %.c %.o,$^) \
	    $B/liblinkwise.a $(OUR_LDFLAGS) $(LDFLAGS) $(LIBS) $(said)

-include $(patsubst %.o,%.d,$(LIB_OBJ) $(CLI_OBJ) $(PROBE_OBJ) $B/obj/bench/joint.o) $(addsuffix .d,$(TESTS) $(BENCH))
