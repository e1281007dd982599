import { describe, expect, test } from 'vitest';
import { parseEtcdUrl, whyNeverDialled } from '../../src/etcd/address.ts';
import { addressOf, RefusedUrlError } from '../../src/etcd/refused-url.ts';

describe('a peer or client URL', () => {
  test.each([
    ['http://127.0.0.1:2379', { secure: false, host: '127.0.0.1', port: 2379, hostPort: '127.0.0.1:2379' }],
    ['https://node-1.example.org:2380', { secure: true, host: 'node-1.example.org', port: 2380 }],
    ['https://[2001:db8::1]:2379', { secure: true, host: '2001:db8::1', port: 2379, hostPort: '[2001:db8::1]:2379' }],
    ['http://node_1:80', { host: 'node_1', port: 80, hostPort: 'node_1:80' }],
  ])('%s is dialled', (url, address) => {
    expect(parseEtcdUrl(url)).toMatchObject({ kind: 'ok', address: { url, ...address } });
  });

  test.each([
    ['no scheme', '127.0.0.1:2379'],
    ['no port', 'http://127.0.0.1'],
    ['port 0', 'http://127.0.0.1:0'],
    ['port too high', 'http://127.0.0.1:70000'],
    ['a path', 'http://127.0.0.1:2379/latest/meta-data'],
    ['a query', 'http://127.0.0.1:2379?x'],
    ['a user', 'http://user@127.0.0.1:2379'],
    ['a user that looks like a host', 'http://10.0.0.1:2379@169.254.169.254:80'],
    ['a unix socket', 'unix:///run/docker.sock:1'],
    ['a file', 'file:///etc/passwd'],
    ['white space', 'http://127.0.0.1:2379 '],
    ['a line break', 'http://127.0.0.1:2379\nhttp://127.0.0.1:1'],
    ['nothing', ''],
  ])('X13 %s is refused', (_what, url) => {
    expect(parseEtcdUrl(url).kind).toBe('refused');
    expect(() => addressOf(url)).toThrow(RefusedUrlError);
  });

  test.each([
    'http://169.254.169.254:80',
    'http://2852039166:80',
    'http://0xa9fea9fe:80',
    'http://0251.0376.0251.0376:80',
    'http://[::ffff:169.254.169.254]:80',
    'http://[::ffff:a9fe:a9fe]:80',
    'http://[fe80::1]:80',
    'http://[fd00:ec2::254]:80',
    'http://100.100.100.200:80',
    'http://metadata.google.internal:80',
    'http://0.0.0.0:2379',
    'http://[::]:2379',
    'http://224.0.0.1:2379',
    'http://255.255.255.255:2379',
    'http://[ff02::1]:2379',
  ])('X13 %s is never dialled, however it is written', (url) => {
    expect(parseEtcdUrl(url).kind).toBe('refused');
  });

  test.each(['10.0.0.1', '127.0.0.1', '192.168.1.1', '169.253.1.1', '::1', '2001:db8::1', 'fd00::1'])(
    '%s may be dialled',
    (ip) => {
      expect(whyNeverDialled(ip)).toBeUndefined();
    },
  );
});
