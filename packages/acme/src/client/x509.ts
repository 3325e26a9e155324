// The library for certificates and requests, loaded when first needed: a server that orders none does not pay for it.
import type * as x509 from '@peculiar/x509';

type X509 = typeof x509;

let loaded: Promise<X509> | undefined;

export const loadX509 = (): Promise<X509> => {
  loaded ??= load();
  return loaded;
};

const load = async (): Promise<X509> => {
  // It reads metadata of its classes while it loads, and fails without.
  await import('reflect-metadata');
  return import('@peculiar/x509');
};
