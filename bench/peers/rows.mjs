// The rows: the measurements of every peer. They are scenarios like those in bench/scenarios, but run for a time instead of a number of
// bytes, because some peers are twenty times slower than others. `takes` selects paths, `meaning` describes the row for users of a
// tunnel, `rank` is the figure that sorts the paths, and `yardstick` is the path with which this figure is compared.
import { manyRows } from './rows/many.mjs';
import { requestRows } from './rows/requests.mjs';
import { startRows } from './rows/start.mjs';
import { bulkRows, connectionRows } from './rows/tcp.mjs';
import { udpRows } from './rows/udp.mjs';

export const ROWS = [...bulkRows, ...requestRows, ...connectionRows, ...udpRows, ...startRows, ...manyRows];
