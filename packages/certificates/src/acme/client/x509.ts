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
  const imported = (await import('@peculiar/x509')) as X509 & { readonly default?: X509 };
  // In a bundle of several files it is a module of CommonJS, which has its names in `default` alone.
  return imported.default ?? imported;
};
