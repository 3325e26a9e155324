// Comma-separated field values (RFC 9110, 5.6.1): items without the blanks around them, empty ones left out.

export const eachListItem = (list: string, visit: (item: string) => void): void => {
  let from = 0;
  while (from <= list.length) {
    const comma = list.indexOf(',', from);
    const to = comma === -1 ? list.length : comma;
    const item = list.slice(from, to).trim();
    if (item !== '') visit(item);
    from = to + 1;
  }
};
