// The addresses people are told.

export interface PublicHttp {
  readonly scheme: 'http' | 'https';
  /** Asked when a tunnel is registered: a port of 0 in the config is known only then. */
  readonly port: () => number;
}

const USUAL_PORT = { http: 80, https: 443 } as const;

export const httpUrl = ({ scheme, port }: PublicHttp, subdomain: string, domain: string): string => {
  const number = port();
  return `${scheme}://${subdomain}.${domain}${number === USUAL_PORT[scheme] ? '' : `:${number}`}`;
};

export const tcpUrl = (domain: string, port: number): string => `tcp://${domain}:${port}`;
