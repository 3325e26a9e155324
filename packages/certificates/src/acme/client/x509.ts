// The library for certificates and requests, loaded when first needed: a server that orders none does not pay for it.
import type * as x509 from '@peculiar/x509';
import { SingleFlight } from '@tunnel/runtime';

type X509 = typeof x509;

const load = async (): Promise<X509> => {
  // It reads metadata of its classes while it loads, and fails without.
  await import('reflect-metadata');
  const imported = (await import('@peculiar/x509')) as X509 & { readonly default?: X509 };
  // In a bundle of several files it is a module of CommonJS, which has its names in `default` alone.
  return imported.default ?? imported;
};

const loading = new SingleFlight(load, { keepsResult: true });

export const loadX509 = (): Promise<X509> => loading.run();
