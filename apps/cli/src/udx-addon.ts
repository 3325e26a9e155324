// The native code of udx-native in a single executable. A release bundles this file in place of udx-native's own loader, which searches
// node_modules. An error keeps peers on the relay.
import { homedir } from 'node:os';
import { join } from 'node:path';
import { getAsset } from 'node:sea';
import { nativeFile } from './io/native-file.ts';

export const loadUdxAddon = (): unknown => {
  const bytes = Buffer.from(getAsset('udx-native.node'));
  const addon = { exports: {} };
  process.dlopen(addon, nativeFile(bytes, { folder: join(homedir(), '.tunnel', 'native'), name: 'udx' }));
  return addon.exports;
};
