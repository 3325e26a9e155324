// The X.509 library, loaded on first use, so that servers without certificate orders do not load it.
import type * as x509 from '@peculiar/x509';
import { SingleFlight } from '@tunnel/runtime';

type X509 = typeof x509;

const load = async (): Promise<X509> => {
  // @peculiar/x509 reads class metadata while loading and fails without the polyfill.
  await import('reflect-metadata');
  const imported = (await import('@peculiar/x509')) as X509 & { readonly default?: X509 };
  // In a bundle with several files the library is a CommonJS module with its exports only in `default`.
  return imported.default ?? imported;
};

const loading = new SingleFlight(load, { keepsResult: true });

export const loadX509 = (): Promise<X509> => loading.run();
