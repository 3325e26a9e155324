// Compares two records of covered branches. A branch is the same in both when its function, its kind and its condition are;
// the file may be another one, because code moves.

/** @returns {{ lost: object[], open: object[] }} branches that only the old record has as covered; branches of new code that no test takes */
export function compareRecords(old, now) {
  const here = new Map(now.branches.map((branch) => [keyOf(branch), branch]));
  const before = new Set(old.branches.map(keyOf));
  const moved = byId(now.branches.filter((branch) => !before.has(keyOf(branch))));
  const found = new Set();
  const lost = [];
  for (const branch of old.branches) {
    const same = here.get(keyOf(branch)) ?? nearest(branch, moved.get(branch.id) ?? []);
    if (!same) continue;
    found.add(same);
    if (branch.covered && !same.covered) lost.push({ ...same, tests: branch.tests });
  }
  return { lost, open: now.branches.filter((branch) => !branch.covered && !found.has(branch)) };
}

const keyOf = ({ file, id }) => `${file} ${id}`;

function byId(branches) {
  const groups = new Map();
  for (const branch of branches) groups.set(branch.id, [...(groups.get(branch.id) ?? []), branch]);
  return groups;
}

/** The one whose path has the most in common with the branch's. */
function nearest({ file }, candidates) {
  const common = (other) => {
    let length = 0;
    while (length < file.length && file[length] === other[length]) length++;
    return length;
  };
  return candidates.toSorted((a, b) => common(b.file) - common(a.file))[0];
}
