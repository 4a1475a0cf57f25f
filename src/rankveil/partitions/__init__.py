"""Tables larger than memory: summaries, ranks and measures partition by partition, without any engine.

Everything here is a function from arrays and files to arrays and files, so that one process, several, or a cluster can
call it. A table is cut into *partitions*, ranges of rows in order. What measures ask of it comes in two ways:

- *summaries* of a partition that are small and can be merged in any order (`summaries`, `rankveil.summaries`);
- *ranks* over all partitions (`runs`, `layout`, `ranking`): every partition sorts its values (a *run*), samples of the
  runs cut the range of values into *spans* that fit in memory, each span is ranked by itself, and the ranks go back to
  their rows. Ranks are doubled: the average rank of ties may end in a half, twice that is a whole number.

`stages` and `measured` put these together as tasks, and `measures` gives what they return the names by which measures
ask for it.

Tables as people have them come before that: `looking` and `comparing` tell from a first look at both tables what their
columns are, `encoding` reads their cells as numbers, `choosing` and `selecting` leave out records with missing values,
`keys` brings those together that have the same key, and `parted` makes a pair of it on which the measures run.
"""
