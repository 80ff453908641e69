# Source me after tap.sh: a python3 ($PY) that has a module and imports linkwise from the tree,
# over the library that was built.
ready_python() { # MODULE PACKAGE
    B=${LINKWISE%/*}
    [ "${B%/san}" = "$B" ] || skip_all "Python cannot load the library of a sanitizer build"
    export T PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1 LINKWISE_LIBRARY=$B/liblinkwise.so.0
    needs_python "$1" "$2"
}
