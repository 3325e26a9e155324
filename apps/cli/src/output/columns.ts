// Cells of a list below each other.

export const columns = (rows: readonly (readonly string[])[]): string[] => {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, at) => (widths[at] = Math.max(widths[at] ?? 0, cell.length)));
  return rows.map((row) => `  ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ')}`.trimEnd());
};

export const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;

/** The reader's own time, to the second. */
export const momentText = (iso: string): string => {
  const time = new Date(iso);
  const two = (part: number): string => String(part).padStart(2, '0');
  const day = [time.getFullYear(), two(time.getMonth() + 1), two(time.getDate())].join('-');
  return `${day} ${[time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(':')}`;
};
