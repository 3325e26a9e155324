// A connection per request: connect, 128 bytes in both directions, close; 20 at a time.
import { CONNECT_FIGURES, measureConnect } from './measures.mjs';

export const tcpConnect = {
  name: 'tcp-connect',
  title: 'TCP, a new connection per request',
  figures: CONNECT_FIGURES,
  targets: [],
  measure: (stage) => measureConnect(stage, 6000),
};
