// The distinct alert URLs of a group's members. Counted as members come and go: a pool of thousands that flaps must not be
// looked through at each downward edge.

export class AlertUrls {
  /** null: nobody has one, as in most groups. */
  #counts: Map<string, number> | null = null;

  add(url: string | null): void {
    if (url === null) return;
    this.#counts ??= new Map();
    this.#counts.set(url, (this.#counts.get(url) ?? 0) + 1);
  }

  remove(url: string | null): void {
    if (url === null || this.#counts === null) return;
    const left = (this.#counts.get(url) ?? 0) - 1;
    if (left > 0) this.#counts.set(url, left);
    else this.#counts.delete(url);
  }

  /** With that of a member that has just left, if it had one. */
  with(url: string | null): readonly string[] {
    const urls = [...(this.#counts?.keys() ?? [])];
    return url === null || this.#counts?.has(url) === true ? urls : [...urls, url];
  }
}
