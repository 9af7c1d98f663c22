"""proxy.py PORT TARGET SECONDS: a TCP proxy on loopback that holds COMMIT PREPARED for so long, or with -1 cuts it off."""
import asyncio, sys
listen, target, wait = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
async def pump(reader, writer, watch, other):
    try:
        while data := await reader.read(65536):
            if watch and b"COMMIT PREPARED" in data:
                if wait < 0:
                    writer.close(); other.close(); return
                await asyncio.sleep(wait)
            writer.write(data); await writer.drain()
    except (ConnectionError, OSError):
        pass
    finally:
        writer.close()
async def client(r, w):
    sr, sw = await asyncio.open_connection("127.0.0.1", target)
    await asyncio.gather(pump(r, sw, True, w), pump(sr, w, False, sw))
async def main():
    async with await asyncio.start_server(client, "127.0.0.1", listen) as s:
        await s.serve_forever()
asyncio.run(main())
