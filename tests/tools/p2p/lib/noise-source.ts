// Parts of the product that the script tests, bundled for it.
export { derivePsk, NoiseHandshake } from '../../../../packages/peer/src/sealed/noise.ts';
export {
  LENGTH_BYTES,
  RECORD_OVERHEAD_BYTES,
  RECORD_PLAIN_MAX_BYTES,
  RecordOpener,
  RecordSealer,
} from '../../../../packages/peer/src/sealed/record-cipher.ts';
