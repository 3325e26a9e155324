// Which ciphers a client likes best: an edge asks for AES unless its client names ChaCha20 first, as those do whose processor has no instructions for AES.
import { readFileSync } from 'node:fs';
import { DEFAULT_CIPHERS } from 'node:tls';

let preferred: { readonly ciphers?: string } | undefined;

/** For every connection of this process alike; looked up once. */
export const preferredCiphers = (): { readonly ciphers?: string } => {
  preferred ??= hasAesInstructions(process.platform === 'linux' ? cpuInfo() : null)
    ? {}
    : { ciphers: chachaFirst(DEFAULT_CIPHERS) };
  return preferred;
};

/** `cpuInfo`: what Linux says of its processors; null: nobody says, and what has no such file (macOS, Windows) runs on processors that have them. */
export const hasAesInstructions = (cpuInfo: string | null): boolean => {
  const features = cpuInfo === null ? null : /^(?:flags|Features)\s*:(.*)$/m.exec(cpuInfo)?.[1];
  return features === null || features === undefined || /\baes\b/.test(features);
};

/** The same ciphers; those of one kind stay in their order. */
export const chachaFirst = (ciphers: string): string => {
  const all = ciphers.split(':');
  const isChacha = (name: string): boolean => name.includes('CHACHA20');
  return [...all.filter(isChacha), ...all.filter((name) => !isChacha(name))].join(':');
};

const cpuInfo = (): string | null => {
  try {
    return readFileSync('/proc/cpuinfo', 'latin1');
  } catch {
    return null;
  }
};
