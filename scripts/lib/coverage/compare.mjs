// Compares two records of covered branches. Branches with the same function, kind and condition are the same branch, even in different
// files, because code moves.

/**
 * @returns {{ lost: object[], open: object[] }} `lost`: branches that are covered in the old record only; `open`: branches of new code
 * without a test
 */
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

/** Returns the candidate with the longest common path with a branch. */
function nearest({ file }, candidates) {
  const common = (other) => {
    let length = 0;
    while (length < file.length && file[length] === other[length]) length++;
    return length;
  };
  return candidates.toSorted((a, b) => common(b.file) - common(a.file))[0];
}
