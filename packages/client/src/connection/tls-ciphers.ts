// Cipher preference of the client. An edge chooses AES unless the client lists ChaCha20 first, so machines without AES instructions put
// ChaCha20 first.
import { readFileSync } from 'node:fs';
import { DEFAULT_CIPHERS } from 'node:tls';

let preferred: { readonly ciphers?: string } | undefined;

/** Returns the TLS cipher option for all connections of this process. Detected once. */
export const preferredCiphers = (): { readonly ciphers?: string } => {
  preferred ??= hasAesInstructions(process.platform === 'linux' ? cpuInfo() : null)
    ? {}
    : { ciphers: chachaFirst(DEFAULT_CIPHERS) };
  return preferred;
};

/**
 * Tells whether the processor has AES instructions. `cpuInfo` is the content of /proc/cpuinfo, or null on systems without the file (macOS,
 * Windows), where processors have AES.
 */
export const hasAesInstructions = (cpuInfo: string | null): boolean => {
  const features = cpuInfo === null ? null : /^(?:flags|Features)\s*:(.*)$/m.exec(cpuInfo)?.[1];
  return features === null || features === undefined || /\baes\b/.test(features);
};

/** Moves the ChaCha20 ciphers to the front of a TLS cipher list. Otherwise the order stays. */
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
