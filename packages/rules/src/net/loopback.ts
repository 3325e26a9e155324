// Whether a host is this machine and no other.
import { mappedV4, readV4, readV6 } from './address-groups.ts';

const LOCALHOST: ReadonlySet<string> = new Set(['localhost', 'localhost.']);

/**
 * Whether a name or an address leads to this machine alone: `localhost`, 127.0.0.0/8, `::1`, also mapped into IPv6 and in brackets. Any
 * other name is refused, `127.example.com` too, because a resolver may answer with any address.
 */
export const isLoopbackHost = (host: string): boolean => {
  const plain = host.toLowerCase().replace(/^\[(.*)\]$/, '$1');
  if (LOCALHOST.has(plain)) return true;
  if (!plain.includes(':')) return isLoopbackV4(readV4(plain));
  // An address with a zone means another place on every machine.
  const groups = plain.includes('%') ? null : readV6(plain);
  if (groups === null) return false;
  return isLoopbackV4(mappedV4(groups)) || groups.every((group, index) => group === (index === 7 ? 1 : 0));
};

const isLoopbackV4 = (address: number): boolean => address !== -1 && address >>> 24 === 127;
