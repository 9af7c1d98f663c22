# Which tests run on a version in a tier: reads pgrx-tests/versions, then the names
# of all tests of servers; prints those of `version` in `tier` (test, push or full),
# and counts the others on stderr. With `without`, another tier, prints only what
# that one does not have; with `family`, the beginning of paths, only those. A line
# that fits no test is an error: it is older than a change of names. So is a test
# that no line fits.

# Version 19 has the tests of 18, but for those of lines with -19, and those of lines with 19.
BEGIN { lists = version == 19 ? 18 : version; column["test"] = 2; column["push"] = 3; column["full"] = 4 }
FNR == 1 { file++ }
file == 1 {
    sub(/#.*/, "")
    if (NF == 0 || $1 == "long") next
    for (name in column) rules[name, $1] = "," $column[name] ","
    known[$1]
    order[++count] = $1
    if (NF != 4) { print "    pgrx-tests/versions: \"" $1 "\" needs three lists of versions" > "/dev/stderr"; exit 1 }
    next
}
{
    best = ""
    for (rule in known)
        if (index($0, rule) == 1 && length(rule) > length(best)) best = rule
    if (best == "") { print "    pgrx-tests/versions: no line fits " $0 > "/dev/stderr"; exit 1 }
    fits[best]++
    if (family != "" && index($0 "::", family "::") != 1) next
    # A twin, which shows that a test is able to fail, proves nothing about the product.
    if (/_able_to_fail$/ && tier != "full") { twins++; next }
    if ((index(rules[tier, best], "," lists ",") || index(rules[tier, best], "," version ",")) && !index(rules[tier, best], ",-" version ",")) {
        if (without == "" || /_able_to_fail$/ || !index(rules[without, best], "," lists ",")) print
    } else left[best]++
}
END {
    for (i = 1; i <= count; i++) {
        rule = order[i]
        if (!fits[rule]) {
            print "    pgrx-tests/versions: \"" rule "\" is no test, or each of its tests has another line" > "/dev/stderr"
            exit 1
        }
        lefts += left[rule]
    }
    if (lefts + twins) print "    not in this run: " lefts + twins " tests of servers (pgrx-tests/versions)" > "/dev/stderr"
}
