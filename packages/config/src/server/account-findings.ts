// Checks the account keys of server.toml against one another and against other keys: a reserved name, port or domain belongs to one
// account only, and must be available on this server.
import { RESERVED_SUBDOMAINS } from '@tunnel/rules/names';
import type { Finding } from '../layers/problem.ts';
import type { ServerConfig } from './server-schema.ts';

/** Rejects a key hash that occurs twice, because one key cannot belong to two accounts. */
export const keyFindings = ({ auth }: ServerConfig): Finding[] =>
  auth.keys.flatMap((key, index) => {
    const first = auth.keys.findIndex((other) => other.sha256 === key.sha256);
    if (first === index) return [];
    return [{ path: ['auth', 'keys', index, 'sha256'], expected: 'a unique key', got: `that of auth.keys[${first}]` }];
  });

/** Checks reserved names and ports. A name (with its wildcard) or a port of the range can belong to one account only. */
export const reservedFindings = ({ auth, limits }: ServerConfig): Finding[] =>
  auth.keys.flatMap(({ account, reserved }, index) =>
    reserved.flatMap((label, at): Finding[] => {
      const path = ['auth', 'keys', index, 'reserved', at];
      const other = auth.keys.find((key) => key.account !== account && key.reserved.includes(label));
      if (other !== undefined)
        return [{ path, expected: 'a name used by only one account', got: `"${label}", which "${other.account}" has` }];
      const parent = label.startsWith('*.') ? label.slice(2) : null;
      if (RESERVED_SUBDOMAINS.has(parent ?? label))
        return [{ path, expected: 'a name that is not reserved', got: `"${label}"` }];
      const ofAccount = auth.keys.filter((key) => key.account === account).flatMap((key) => key.reserved);
      if (parent !== null && !ofAccount.includes(parent)) {
        return [{ path, expected: `listed together with "${parent}" for the same account`, got: `only "${label}"` }];
      }
      const [transport, port] = label.split('/');
      if (port === undefined) return [];
      const [from, to] = transport === 'tcp' ? limits.tcp_port_range : limits.udp_port_range;
      const isInRange = Number(port) >= from && Number(port) <= to;
      return isInRange
        ? []
        : [{ path, expected: `a port of \`limits.${transport}_port_range\` ${from}-${to}`, got: `"${label}"` }];
    }),
  );

const ENDS_AS_ADDRESS = /\.(?:\d+|0x[0-9a-f]*)$/;

/** Checks custom domains. A domain belongs to one account only, must be a host name, and must not be the edge's domain or below it. */
export const domainFindings = ({ auth, server }: ServerConfig): Finding[] =>
  auth.keys.flatMap(({ account, domains }, index) =>
    domains.flatMap((domain, at): Finding[] => {
      const path = ['auth', 'keys', index, 'domains', at];
      const other = auth.keys.find((key) => key.account !== account && key.domains.includes(domain));
      if (other !== undefined)
        return [
          { path, expected: 'a domain used by only one account', got: `"${domain}", which "${other.account}" has` },
        ];
      if (ENDS_AS_ADDRESS.test(domain)) return [{ path, expected: 'a host name, not an address', got: `"${domain}"` }];
      const host = domain.startsWith('*.') ? domain.slice(2) : domain;
      const own = server.domain.toLowerCase();
      if (host !== own && !host.endsWith(`.${own}`)) return [];
      return [{ path, expected: `neither \`server.domain\` nor below it`, got: `"${domain}"` }];
    }),
  );
