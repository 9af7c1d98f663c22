# Which tests run on a version: reads pgrx-tests/versions, then the names of all
# tests of servers; prints those of `version`, and lists the others on stderr.
# A line that fits no test is an error: it is older than a change of names.

FNR == 1 { file++ }
file == 1 {
    sub(/#.*/, "")
    if (NF == 0) next
    rule = $1
    $1 = ""
    rules[rule] = $0 " "
    order[++count] = rule
    next
}
{
    best = ""
    for (rule in rules)
        if ((rule == "*" || index($0 "::", rule "::") == 1) && length(rule) > length(best)) best = rule
    fits[best]++
    if (best == "") { print "    no line of pgrx-tests/versions fits " $0 > "/dev/stderr"; wrong = 1 }
    else if (index(rules[best], " " version " ")) names[++chosen] = $0
    else left[best]++
}
END {
    for (i = 1; i <= count; i++) {
        rule = order[i]
        if (!fits[rule]) {
            print "    pgrx-tests/versions: \"" rule "\" is no test, or each of its tests has another line" > "/dev/stderr"
            wrong = 1
        }
        if (left[rule]) {
            versions = rules[rule]
            gsub(/^ +| +$/, "", versions)
            gsub(/ +/, ", ", versions)
            print "    on PostgreSQL " versions " only: " (rule == "*" ? "what has no line of its own" : rule) ", " left[rule] (left[rule] == 1 ? " test" : " tests") > "/dev/stderr"
        }
    }
    if (wrong) print "wrong"
    for (i = 1; i <= chosen; i++) print names[i]
}
