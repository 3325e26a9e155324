// The HTTP server of a folder.
import type { ByteDuplex } from '@tunnel/mux';

export class FileServer {
  constructor(_root: string, _options: { readonly spa: boolean; readonly listing: boolean }) {}

  connect(): ByteDuplex {
    throw new Error('not yet');
  }
}
