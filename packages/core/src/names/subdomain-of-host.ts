// Which tunnel a visitor means: the one label in front of the edge's own domain.

/** `host` in lower case and without a port. null: not a name directly below the domain. */
export const subdomainOf = (host: string, domain: string): string | null => {
  // One trailing dot makes a name absolute for a resolver; to us it is the same name.
  const name = host.endsWith('.') ? host.slice(0, -1) : host;
  const length = name.length - domain.length - 1;
  if (length < 1 || !name.endsWith(domain) || name[length] !== '.') return null;
  const label = name.slice(0, length);
  return label.includes('.') ? null : label;
};
