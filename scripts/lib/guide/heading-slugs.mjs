// Anchors of headings: the same as on GitHub, so that a link works in the repository and in the product.

/** Returns a function that gives each heading of a page its anchor. A repeated heading gets a number. */
export function headingSlugs() {
  const seen = new Map();
  return (text) => {
    const slug = text
      .toLowerCase()
      .replace(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, '')
      .replaceAll(' ', '-');
    let unique = slug;
    while (seen.has(unique)) {
      const count = (seen.get(slug) ?? 0) + 1;
      seen.set(slug, count);
      unique = `${slug}-${count}`;
    }
    seen.set(unique, 0);
    return unique;
  };
}
