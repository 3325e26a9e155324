// Which paths a row takes.

export const isTcp = ({ protocol }) => protocol === 'tcp';
export const isUdp = ({ protocol }) => protocol === 'udp';
export const isHttp = ({ protocol, visitorsTls }) => protocol === 'http' && !visitorsTls;
export const isHttps = ({ visitorsTls }) => Boolean(visitorsTls);

/** The path's name without the version of Node.js. */
export const plainName = ({ name }) => name.replace(/@.*/, '');
