#!/usr/bin/perl
# Do the tests notice?  One operator or constant of the sources is changed at a time, in a copy of
# the tree under build/mutants, and the tests of its room that reach its line are run: the quickest
# first, until one fails.  What none of them notices is printed as "survived" with their number, or
# as "unreached" where there is none.
#
#     make mutants N=100 SEED=1 [T="costmodel mapper/bound/rows.c costmodel/group.c:294"]
#
# A change that does not compile, or whose object is the same, is drawn anew.  A test that takes
# five times as long as usual has noticed.  Tests link a shared library, so that a change is one
# file compiled.  Times are of the CPU, so that a busy machine changes nothing.  Which lines a test
# reaches is what gcov says of one run of it, and is kept until a source changes; gcc compiles that.
# What survives runs once more with its file under AddressSanitizer, as in `SAN=1 make check`: what
# is noticed only then is marked.
use strict;
use warnings;
use Cwd 'getcwd';
use Digest::MD5 'md5_hex';
use File::Basename 'dirname';
use File::Path 'make_path';
use POSIX 'ceil';

# Where sources are drawn from, and tests that see them, folders or files: all of the first, and of
# the others those that are quick.  Of the mapper the bound alone: what changes in the search is most
# often only slower, or as good.
my %ROOMS = (
    'calibrate'       => [qw(calibrate cli)],
    'check'           => [qw(check mapper cli/running.t)],
    'costmodel'       => [qw(costmodel check memest calibrate mapper)],
    'jobs'            => [qw(jobs calibrate launch)],
    'launch'          => [qw(launch)],
    'mapper/bound'    => [qw(mapper costmodel)],
    'memest'          => [qw(memest costmodel check calibrate)],
    'report'          => [qw(report cli)],
    'topology/edit'   => [qw(report topology cli)], # what-ifs
    'topology/survey' => [qw(topology report cli)],
    'workload'        => [qw(workload memest costmodel calibrate jobs)],
);
my $QUICK_S = 2;
my $SLOW_S = $ENV{SLOW} || 30; # tests that take longer are left out
my $LEAST_S = 5;
my $IDLE_S = 120; # by the clock a test may take this, and
my $WAIT = 20;    # so many times as long as on the CPU

my ($count, $seed, @of) = @ARGV;
die "usage: $0 COUNT SEED [ROOM|FILE...]\n" if grep { ($_ // '') !~ /^\d+$/ } $count, $seed;
my $make = 'make --no-print-directory';
my $tree = getcwd . '/build/mutants';
my $library = "$tree/build/mutant.so";
$ENV{CMOCKA_MESSAGE_OUTPUT} = 'TAP';
$ENV{OMP_WAIT_POLICY}       = 'passive';
$ENV{LINKWISE}              = "$tree/build/linkwise";
$ENV{BWPROBE}               = "$tree/build/bwprobe";
delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES)};

sub slurp {
    open my $f, '<', $_[0] or return '';
    local $/;
    return scalar <$f>;
}

sub spew {
    my ($path, $text) = @_;
    make_path(dirname $path);
    open my $f, '>', $path or die "$path: $!\n";
    print $f $text;
    close $f or die "$path: $!\n";
}

# In a group of its own, of which nothing stays, so that Ctrl-C ends it with us.
my $running;
sub stop { kill 'KILL', -$running if $running; undef $running }
$SIG{INT} = $SIG{TERM} = sub { stop; exit 1 };
sub sh {
    $running = fork // die "fork: $!\n";
    if ($running == 0) {
        setpgrp;
        exec 'bash', '-c', $_[0];
    }
    waitpid $running, 0;
    my $passed = $? == 0;
    stop;
    return $passed; # $? says more
}

# ---- the copy ----

my @tracked = split /\0/, `git ls-files -z --cached --others --exclude-standard`;
my %tracked = map { $_ => 1 } @tracked;
for my $f (grep { -f && !-l } @tracked) {
    my $text = slurp $f;
    next if -e "$tree/$f" && slurp("$tree/$f") eq $text;
    spew "$tree/$f", $text;
    chmod((stat $f)[2] & 0777, "$tree/$f");
}
for my $f (map { glob "$tree/$_/*.c" } keys %{{map { dirname($_) => 1 } grep /\.c$/, @tracked}}) {
    unlink $f unless $tracked{substr $f, 1 + length $tree};
}
chdir $tree or die "$tree: $!\n";
# They see the copy alone: a git folder above it is another tree.
$ENV{GIT_CEILING_DIRECTORIES} = dirname $tree;

# ---- places of changes ----

my %CHANGE = (
    '*'  => '/',  '/'  => '*',  '+'  => '-',  '-'  => '+',
    '+=' => '-=', '-=' => '+=', '*=' => '/=', '/=' => '*=',
    '<'  => '<=', '<=' => '<',  '>'  => '>=', '>=' => '>',  '==' => '!=', '!=' => '==',
    '&&' => '||', '||' => '&&', 'fmin' => 'fmax', 'fmax' => 'fmin',
    '0'  => '1',  '1'  => '0',  '0.0' => '1.0', '1.0' => '0.0', '2.0' => '3.0', '2' => '3',
);
my @longest_first = map { quotemeta } sort { length $b <=> length $a || $a cmp $b } keys %CHANGE;
my $words = join '|', grep { /^\w/ } @longest_first;
my $signs = join '|', grep { !/^\w/ } @longest_first;

# The text with what is not changed blanked out: comments, strings, preprocessor lines, asserts,
# error messages and progress, zeros that only initialise, sizes of memory, which only sanitizers
# see, comparisons that choose between two equals (`if (a < b) b = a;`, `a < b ? a : b`), and
# whether a rate or a size is above zero, since nothing has one byte a second.
sub blanked {
    my $text = shift;
    my $value = qr/[\w.>\[\]-]+(?: [*\/+-] [\w.>\[\]-]+)*/;
    my $blank = sub { (my $s = shift) =~ s/[^\n]/ /g; $s };
    $text =~ s{(/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')}{$blank->($1)}gse;
    $text =~ s{^([ \t]*\#(?:[^\n]*\\\n)*[^\n]*)}{$blank->($1)}gme;
    $text =~ s{(\b(?:assert|err_\w+|_Static_assert|progress|[mc]alloc|realloc|array_grow)
                 \ ?(\((?:[^()]++|(?2))*\)))}{$blank->($1)}gsex;
    $text =~ s{\bif\ \(($value)\ \K([<>]=?)(?=\ ($value)\)\s+(?:\3\ =\ \1|\1\ =\ \3);)}
              {$blank->($2)}gsex;
    $text =~ s{(?:[=?:,(]|\breturn)\s*\K($value)\ ([<>]=?)
               (?=\ ($value)\ \?\s*(?:\1\s*:\s*\3|\3\s*:\s*\1)\s*[;:,)])}
              {"$1 " . $blank->($2)}gsex;
    $text =~ s{_(?:bytes|per_s)\ >\ \K(0)\b(?!\.)}{ }gx;
    $text =~ s{(\{0\}|\[\d+\])}{$blank->($1)}ge;
    return $text;
}

# clang-format puts blanks around binary operators alone.
sub sites {
    my $file = shift;
    my $text = blanked(slurp $file);
    my @sites;
    while ($text =~ /(?:(?<=\s)($signs)(?=\s)|(?<![\w.])($words)(?![\w.]))/g) {
        my $was = $1 // $2;
        push @sites, {file => $file, at => pos($text) - length $was, was => $was};
    }
    return @sites;
}

sub line_of {
    my $site = shift;
    return 1 + (() = substr(slurp($site->{file}), 0, $site->{at}) =~ /\n/g);
}

sub room_of { my $f = shift; (grep { index($f, "$_/") == 0 } keys %ROOMS)[0] }

# Is a place in one of the rooms, files and lines that were asked for?
sub is_chosen {
    my $site = shift;
    return !@of || grep {
        my ($of, $line) = split /:/;
        ($site->{file} eq $of || index($site->{file}, "$of/") == 0)
            && (!$line || $line == line_of($site));
    } @of;
}

my @sites = grep { is_chosen $_ } map { sites $_ } sort grep { /\.c$/ && room_of $_ } @tracked;
die "no place to change in @of\n" unless @sites;

# ---- the build ----

my $built = "CFLAGS='-O1 -fvisibility=default' LDFLAGS='$ENV{LDFLAGS}'";
my ($archive, $log) = ('build/liblinkwise.a', "$tree/build.log");
my @objects;

sub object_of { 'build/obj/' . $_[0] =~ s/\.c$/.o/r }
sub watched_of { 'build/watched/' . $_[0] =~ s/\.c$/.o/r }

sub compile {
    my ($cc, $flags, $file, $object) = @_;
    make_path(dirname $object);
    return sh "$cc $ENV{OUR_CFLAGS} -fvisibility=default $flags -c -o $object $file >$log 2>&1";
}

# The library that all programs load, with another object in place of some.
sub link_library {
    my ($flags, %instead) = @_;
    my @of = map { $instead{$_} // $_ } @objects;
    return sh "$ENV{CC} -shared -Wl,-Bsymbolic $flags -o $library @of $ENV{LIBS} >$log 2>&1";
}

# The archive that tests and programs link is a line that names the shared library: it stays as it
# is, so that they are built once.
sub build {
    my @programs = @_;
    sh "$make $built build/liblinkwise.so.0 >$log 2>&1" or return 0;
    @objects = split ' ', `find build/obj -name '*.o'`;
    @objects = grep { !m{^build/obj/(cli|bwprobe|install)/} } @objects;
    link_library '' or return 0;
    spew $archive, "INPUT ( $library )\n" unless slurp($archive) =~ /^INPUT/;
    return sh "$make $built -o $archive build/linkwise build/bwprobe @programs >$log 2>&1";
}

my %tests; # of each room
my %rooms = map { room_of($_->{file}) => 1 } @sites;
for my $room (keys %rooms) {
    my $of = join '|', @{$ROOMS{$room}};
    $tests{$room} = [grep { m{^tests/($of)(/[^/]+\.[ct])?$} } @tracked];
}
my %all = map { $_ => 1 } map { @$_ } values %tests;
build map { "build/" . s/\.c$//r } grep { /\.c$/ } sort keys %all
    or die slurp $log, "the tree does not build\n";

# ---- the tests ----

my %usual; # seconds of a test
my %left;  # why it is left out

# What is before a program is `env NAME=VALUE` or nothing.
# @return seconds, and whether it passed with none of its processes above `limit` of them, or else
# whether that was why it ended
sub run_test {
    my ($test, $limit, $before) = (@_, '');
    my $program = $test =~ s/\.c$//r;
    my $command = $test =~ /\.c$/ ? "$before build/$program" : "bash $test";
    my ($most, $wait) = (ceil($limit), ceil($IDLE_S + $WAIT * $limit));
    my (undef, undef, @from) = times;
    my $limited = "ulimit -t $most; timeout --foreground -k 1 $wait $command";
    my $passed = sh "{ $limited; } >$log 2>&1 </dev/null";
    my $killed = grep { $? >> 8 == $_ } 124, 137, 152; # by timeout, SIGKILL, SIGXCPU
    my (undef, undef, @to) = times;
    my $s = $to[0] + $to[1] - $from[0] - $from[1];
    return ($s, $passed, !$passed && ($killed || $s > $limit));
}

# How long a test may take to be run at all: longer in the room that it is of.
sub longest { my ($test, $room) = @_; $test =~ m{^tests/$ROOMS{$room}[0]/} ? $SLOW_S : $QUICK_S }

# Lines of code that were drawn from, and those of them that each test reaches: file:line.
my (%code, %reached);

# @return lines that gcov says are code, and how often they ran
sub gcov {
    my @files = grep { -e } @_ or return ();
    my ($file, @lines);
    open my $in, '-|', "gcov -t @files 2>$log" or die "gcov: $!\n";
    while (<$in>) {
        $file = $1 if /^\s*-:\s*0:Source:(.*)/;
        push @lines, ["$file:$2", $1] if /^\s*([\d#=]+)\*?:\s*(\d+):/;
    }
    return @lines;
}

# Has every test of the rooms' run with the drawn files watched by gcov, if nothing that it depends
# on is as it was then.
sub watch {
    my ($known, @files) = split ' ', slurp 'watched';
    my @seen = grep { m{\.[ch]$|^launch/|^workload/profiles/} } @tracked;
    @seen = grep { !m{^(bench/|tests/(?!lib/))} } @seen;
    my $sources = md5_hex map { slurp $_ } sort @seen;
    my %files = map { $_ => 1 } ($known // '') eq $sources ? @files : ();

    if (grep { !$files{$_->{file}} } @sites) {
        @files = sort keys %{{%files, map { $_->{file} => 1 } @sites}};
        unlink glob 'reached/*';
        for my $f (@files) {
            compile 'gcc', '-Og --coverage', $f, watched_of $f
                or die slurp $log, "$f does not compile for gcov\n";
        }
        spew 'watched', "$sources\n@files\n";
    }
    my @notes = map { watched_of($_) =~ s/o$/gcno/r } @files;
    my @counts = map { s/gcno$/gcda/r } @notes;
    $code{$_->[0]} = 1 for gcov @notes;
    link_library '--coverage', map { object_of($_) => watched_of $_ } @files
        or die slurp $log, "the library does not link for gcov\n";
    for my $t (sort keys %all) {
        my ($longest) = sort { $b <=> $a } map { longest $t, $_ } grep { is_of($t, $_) } keys %rooms;
        my $known = 'reached/' . $t =~ tr{/}{_}r;
        my ($digest, $s, @lines) = split ' ', slurp $known;
        my @helpers = $t =~ /t$/ ? grep { m{^tests/lib/.*\.(sh|py)$} } @tracked : ();
        my $now = md5_hex map { slurp $_ } $t, @helpers;
        if (($digest // '') ne $now || $s < 0 && -$s < $longest) {
            unlink @counts;
            ($s, my ($passed, $long)) = run_test $t, $longest;
            @lines = map { $_->[0] } grep { $_->[1] =~ /^[1-9]/ } gcov @counts;
            $left{$t} = 'fails without any change' unless $passed || $long;
            next if $left{$t};
            $s = -$longest unless $passed;
            spew $known, join "\n", $now, $s, @lines, '';
        }
        $usual{$t} = $s;
        $left{$t} = "takes over $longest s" if $s < 0;
        $reached{$t} = {map { $_ => 1, s/:.*//r => 1 } @lines};
    }
    link_library '' or die slurp $log;
}
sub is_of { my ($test, $room) = @_; scalar grep { $_ eq $test } @{$tests{$room}} }
watch;

# The tests of its room that reach the line of a place, the quickest first; where gcov knows no code
# on that line, the file.
sub tests_of {
    my $site = shift;
    my ($file, $room) = ($site->{file}, room_of $site->{file});
    my $line = "$file:" . line_of $site;
    my $place = $code{$line} ? $line : $file;
    my @tests = grep { !$left{$_} && $reached{$_}{$place} } @{$tests{$room}};
    @tests = grep { $usual{$_} < longest $_, $room } @tests;
    return sort { $usual{$a} <=> $usual{$b} || $a cmp $b } @tests;
}

# ---- the changes ----

my ($file, $text, @times);
sub restore {
    return unless defined $file;
    spew $file, $text;
    utime @times, $file;
    undef $file;
}
END { restore }

# The place's file with its change, as an object of its own.
sub compile_changed {
    my ($site, $cc, $flags) = @_;
    $file = $site->{file};
    $text = slurp $file;
    @times = (stat $file)[8, 9];
    my $changed = $text;
    substr($changed, $site->{at}, length $site->{was}) = $CHANGE{$site->{was}};
    spew $file, $changed;
    my $compiles = compile($cc, $flags, $site->{file}, "$log.o");
    restore;
    return $compiles;
}

# The first of these programs that is seen to read or write where it may not.
sub sanitized_by {
    my ($site, @programs) = @_;
    chomp(my $asan = `gcc -print-file-name=libasan.so`);
    my $flags = '-fsanitize=address';
    compile_changed($site, 'gcc', "-O1 $flags") or return undef;
    link_library $flags, object_of($site->{file}) => "$log.o" or return undef;
    for my $t (@programs) {
        run_test $t, $LEAST_S + 10 * $usual{$t}, "env ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$asan";
        return $t if slurp($log) =~ /ERROR: AddressSanitizer/;
    }
    return undef;
}

# Who noticed; undef if it does not compile or is the same.
sub noticed_by {
    my $site = shift;
    my @tests = tests_of $site;
    my $object = object_of $site->{file};
    return undef
        unless compile_changed($site, $ENV{CC}, '-O1') && slurp($object) ne slurp "$log.o";
    return 'unreached' unless @tests;
    link_library '', $object => "$log.o" or return undef;
    for my $t (@tests) {
        my $limit = $LEAST_S + 5 * $usual{$t};
        my (undef, $passed, $long) = run_test $t, $limit;
        return $t . ($long ? ' (time)' : '') unless $passed;
    }
    my $by = sanitized_by $site, grep { /\.c$/ } @tests;
    return $by ? "$by (sanitizer)" : sprintf 'survived %d', scalar @tests;
}

# The line of a place, with what it becomes in braces.
sub shown {
    my $site = shift;
    my $text = slurp $site->{file};
    my $line = line_of $site;
    substr($text, $site->{at}, length $site->{was}) = "{$site->{was} -> $CHANGE{$site->{was}}}";
    return ("$site->{file}:$line", (split /\n/, $text)[$line - 1] =~ s/^\s+//r);
}

srand $seed;
$| = 1;
my (%drawn, %noticed);
while ($count > 0 && @sites) {
    my $site = splice @sites, int rand @sites, 1;
    my ($where, $what) = shown $site;
    my $by = noticed_by $site;
    next unless defined $by;
    $count--;
    printf "%-30s %-30s %s\n", $where, $by =~ s{^tests/}{}r, $what;
    $drawn{$_}++, $noticed{$_} += $by =~ m{/} for room_of($site->{file}), 'all';
}
printf "\n%-14s %8s %8s\n", qw(room drawn noticed);
printf "%-14s %8d %7.0f%%\n", $_, $drawn{$_}, 100 * $noticed{$_} / $drawn{$_} for sort keys %drawn;
printf "left out: %s, which %s\n", $_, $left{$_} for sort keys %left;
