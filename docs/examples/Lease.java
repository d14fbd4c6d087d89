import java.io.*;
import java.net.*;
import java.nio.channels.*;
import static java.nio.charset.StandardCharsets.UTF_8;

/** Faults in DNS for a test in Java 16 or later, without a library: java Lease.java CONTROL_SOCKET CONTAINER NAME
 * Rules are in force when a call returns, and gone with the connection, however this process ends.
 */
public class Lease implements AutoCloseable {
    private final SocketChannel channel;
    private final InputStream in;
    private int left; // of the chunk that is being read

    Lease(String path) throws IOException {
        channel = SocketChannel.open(UnixDomainSocketAddress.of(path));
        in = new BufferedInputStream(Channels.newInputStream(channel));
        write("POST /v1/lease HTTP/1.1\r\nHost: dns11\r\nTransfer-Encoding: chunked\r\n\r\n");
        String status = line(false);
        if (!status.contains(" 200 ")) throw new IOException(status);
        while (!line(false).isEmpty()) { } // the headers
    }

    /** Sends a line of JSON, and returns the one that answers it. */
    String ask(String json) throws IOException {
        write(Integer.toHexString(json.getBytes(UTF_8).length + 1) + "\r\n" + json + "\n\r\n");
        String reply = line(true);
        // What a recording has recorded comes in between.
        while (reply.startsWith("{\"recorded\"")) reply = line(true);
        if (reply.contains("\"error\":")) throw new IOException(reply);
        return reply;
    }

    @Override public void close() throws IOException { channel.close(); }
    private void write(String text) throws IOException {
        Channels.newOutputStream(channel).write(text.getBytes(UTF_8));
    }

    private String line(boolean isChunked) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (;;) {
            // Before a chunk is its length, and before that the end of the chunk before it, an empty line.
            while (isChunked && left == 0) left = Integer.parseInt("0" + line(false), 16);
            int next = in.read();
            if (isChunked) left--;
            if (next < 0) throw new EOFException("dns11 has ended the lease");
            if (next == '\n') return bytes.toString(UTF_8).strip();
            bytes.write(next);
        }
    }

    public static void main(String[] args) throws IOException {
        try (Lease lease = new Lease(args[0])) {
            String rule = "{'rule': {'name': '%s', 'action': 'servfail', 'count': 2, 'in': {'container': '%s'}}}";
            lease.ask(rule.replace('\'', '"').formatted(args[2], args[1]));
            System.out.println("in force");
            System.in.read();
            System.out.println(lease.ask("{\"report\": true}"));
        }
    }
}
