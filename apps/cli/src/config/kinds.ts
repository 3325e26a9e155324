/** Commands that publish a single tunnel, in the order of `tunnel add --help`. `tunnel add` accepts the same commands. */
export const KIND_NAMES = ['http', 'files', 'tcp', 'tls', 'udp'] as const;

export type KindName = (typeof KIND_NAMES)[number];
